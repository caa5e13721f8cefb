/** Hosts of URLs that all lead to 127.0.0.1 or ::1, however they are written. */

export const LOOPBACK_HOSTS = `
  127.0.0.1 2130706433 0x7f.1 127.1 0177.0.0.1 0x7f000001 017700000001 127.0.0.1. １２７.０.０.１
  127。0。0。1 ①②⑦.0.0.1 0x7F.0x0.0x0.0x1 [::1] [0:0:0:0:0:0:0:1] [::ffff:7f00:1] [::ffff:127.0.0.1]
  [64:ff9b::7f00:1] [2002:7f00:1::] [::127.0.0.1] good.example@127.0.0.1 good.example:80@127.0.0.1
  good.example%40@127.0.0.1
`
  .trim()
  .split(/\s+/);
