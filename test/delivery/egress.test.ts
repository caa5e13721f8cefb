/** The egress guard as a table: which addresses and URLs are refused, under which rules, in every spelling. */
import assert from "node:assert/strict";
import { networkInterfaces } from "node:os";
import { test } from "node:test";
import { egressRules, refusal, refusalOfUrl } from "../../src/delivery/egress.ts";
import { LOOPBACK_HOSTS } from "./loopback-hosts.ts";

const LISTENING = { host: "127.0.0.1", port: 3000 };
const DEFAULTS = egressRules({ deny: [], allow: [], listening: LISTENING });
const NO_PRIVATE = egressRules({ deny: ["private"], allow: [], listening: LISTENING });

const PUBLIC = [
  "93.184.215.14",
  "8.8.8.8",
  "1.1.1.1",
  "172.15.0.1",
  "172.32.0.1",
  "100.63.0.1",
  "100.128.0.1",
];
const PUBLIC_6 = [
  "2606:4700::1111",
  "2a00:1450:4001:82b::200e",
  "64:ff9b::8.8.8.8",
  "64:ff9b:1::8.8.8.8",
  "2002:808:808::",
];
const PRIVATE = [
  "10.0.0.1",
  "172.16.0.1",
  "172.31.255.255",
  "192.168.1.1",
  "100.64.0.1",
  "127.0.0.1",
  "127.8.8.8",
];
const PRIVATE_6 = ["::1", "fc00::1", "fd12:3456::1", "fec0::1"];
const NEVER = `
  169.254.169.254 169.254.170.2 169.254.0.1 100.100.100.200 168.63.129.16 192.0.0.192 0.0.0.0
  0.1.2.3 224.0.0.1 239.255.255.255 255.255.255.255 :: fe80::1 fe80::1%eth0 febf::1 ff02::1
  fd00:ec2::254 fd20:ce::254
`
  .trim()
  .split(/\s+/);

test("by default private networks may be called, and what is never called may not", () => {
  for (const address of [...PUBLIC, ...PUBLIC_6, ...PRIVATE, ...PRIVATE_6]) {
    assert.equal(refusal(DEFAULTS, address, 80), null, address);
  }
  for (const address of NEVER)
    assert.match(refusal(DEFAULTS, address, 80) ?? "", /only if ERRAND_EGRESS_ALLOW/, address);
});

test("`private` in DENY refuses loopback and inner networks as well, and nothing public", () => {
  for (const address of [...PUBLIC, ...PUBLIC_6])
    assert.equal(refusal(NO_PRIVATE, address, 80), null, address);
  for (const address of [...PRIVATE, ...PRIVATE_6, ...NEVER])
    assert.notEqual(refusal(NO_PRIVATE, address, 80), null, address);
});

test("an IPv6 address that carries an IPv4 one is judged by that too", () => {
  const carriers: readonly (readonly [string, (quad: string, hex: string) => string])[] = [
    ["mapped", (quad) => `::ffff:${quad}`],
    ["mapped, in hex", (_, hex) => `::ffff:${hex}`],
    ["mapped, in full", (_, hex) => `0:0:0:0:0:ffff:${hex}`],
    ["compatible", (quad) => `::${quad}`],
    ["translated", (quad) => `::ffff:0:${quad}`],
    ["NAT64", (_, hex) => `64:ff9b::${hex}`],
    ["local NAT64, 96 bits", (quad) => `64:ff9b:1::${quad}`],
    ["local NAT64, 96 bits with a subnet", (quad) => `64:ff9b:1:abcd::${quad}`],
    ["6to4", (_, hex) => `2002:${hex}::`],
    ["6to4 with a subnet", (_, hex) => `2002:${hex}:1::5`],
    ["Teredo, server", (_, hex) => `2001:0:${hex}::f7f7:f7f7`],
    ["ISATAP", (quad) => `2001:db8::5efe:${quad}`],
    ["ISATAP, global", (quad) => `2001:db8::200:5efe:${quad}`],
  ];
  for (const [name, carry] of carriers) {
    const metadata = carry("169.254.169.254", "a9fe:a9fe");
    assert.match(refusal(DEFAULTS, metadata, 80) ?? "", /metadata/, `${name}: ${metadata}`);
    const loopback = carry("127.0.0.1", "7f00:1");
    assert.equal(refusal(DEFAULTS, loopback, 80), null, `${name}: ${loopback}`);
    assert.notEqual(refusal(DEFAULTS, loopback, 3000), null, `${name}, own port: ${loopback}`);
    assert.notEqual(refusal(NO_PRIVATE, loopback, 80), null, `${name}: ${loopback}`);
    const open = carry("8.8.8.8", "808:808");
    assert.equal(refusal(NO_PRIVATE, open, 80), null, `${name}: ${open}`);
  }
  // RFC 6052 §2.2, table of prefix lengths, for 10.0.0.1: the IPv4 address jumps over bits 64 to 71.
  for (const address of ["64:ff9b:1:a00:0:100::", "64:ff9b:1:a:0:1::", "64:ff9b:1:0:a:0:100:0"]) {
    assert.equal(refusal(DEFAULTS, address, 80), null, address);
    assert.match(refusal(NO_PRIVATE, address, 80) ?? "", /a way to 10\.0\.0\.1/, address);
  }
  // Teredo keeps the client's address with its bits turned over.
  assert.match(refusal(NO_PRIVATE, "2001:0:808:808::80ff:fffe", 80) ?? "", /a way to 127\.0\.0\.1/);
});

test("ALLOW beats DENY and what is never called, and only for what it names", () => {
  const rules = egressRules({
    deny: ["private", "8.8.0.0/16", "2606:4700::/32"],
    allow: ["10.1.0.0/16", "169.254.169.254", "8.8.8.8", "2606:4700::1111", "fd00:ec2::254"],
    listening: LISTENING,
  });
  const allowed = [
    "10.1.2.3",
    "169.254.169.254",
    "8.8.8.8",
    "2606:4700::1111",
    "fd00:ec2::254",
    "::ffff:10.1.2.3",
    "64:ff9b::808:808",
  ];
  for (const address of allowed) assert.equal(refusal(rules, address, 80), null, address);
  const refused = [
    "10.2.0.1",
    "169.254.169.253",
    "8.8.4.4",
    "2606:4700::1112",
    "fd00:ec2::23",
    "127.0.0.1",
    "64:ff9b::808:404",
  ];
  for (const address of refused) assert.notEqual(refusal(rules, address, 80), null, address);
});

test("entries: addresses, CIDRs, mapped ranges, bits beyond the prefix", () => {
  const rows: readonly (readonly [string, string, string])[] = [
    ["10.0.0.0/8", "10.255.255.255", "11.0.0.0"],
    ["10.1.2.3/8", "10.255.255.255", "11.0.0.0"],
    ["192.0.2.7", "192.0.2.7", "192.0.2.8"],
    ["192.0.2.7/32", "192.0.2.7", "192.0.2.6"],
    ["0.0.0.0/0", "8.8.8.8", "2606:4700::1111"],
    ["::/0", "2606:4700::1111", "8.8.8.8"],
    ["2001:db8::/33", "2001:db8:7fff::1", "2001:db8:8000::1"],
    ["::ffff:10.0.0.0/104", "10.9.9.9", "11.0.0.0"],
    ["::ffff:10.0.0.1", "10.0.0.1", "10.0.0.2"],
  ];
  for (const [entry, refused, open] of rows) {
    const rules = egressRules({ deny: [entry], allow: [], listening: LISTENING });
    assert.match(refusal(rules, refused, 80) ?? "", /ERRAND_EGRESS_DENY/, `${entry} ${refused}`);
    assert.equal(refusal(rules, open, 80), null, `${entry} ${open}`);
  }
});

test("a wrong entry stops the start with a message that names it", () => {
  const wrong = [
    "",
    "10.0.0/8",
    "10.0.0.0/33",
    "10.0.0.0/-1",
    "10.0.0.0/",
    "::/129",
    "::ffff:0:0/90",
    "example.com",
    "Private",
    "10.0.0.1:80",
  ];
  for (const entry of wrong) {
    for (const options of [
      { deny: [entry], allow: [] },
      { deny: [], allow: [entry] },
    ]) {
      assert.throws(
        () => egressRules({ ...options, listening: LISTENING }),
        (error: Error) => error.message.startsWith(JSON.stringify(entry)),
        entry,
      );
    }
  }
});

test("Errand's own address and port are refused, its other ports and other hosts' same port are not", () => {
  const interfaceAddress = Object.values(networkInterfaces())
    .flat()
    .find((found) => found?.internal === false)?.address;
  const wildcard = [
    ["127.0.0.1", "127.5.5.5", "::1", ...(interfaceAddress === undefined ? [] : [interfaceAddress])],
    ["8.8.8.8", "10.99.99.99"],
  ] as const;
  const loopback = [
    ["127.0.0.1", "127.5.5.5", "::1", "::ffff:127.0.0.1"],
    ["8.8.8.8", "10.99.99.99"],
  ] as const;
  const rows: readonly (readonly [string, readonly (readonly string[])[]])[] = [
    ["127.0.0.1", loopback],
    ["::1", loopback],
    ["localhost", loopback],
    ["0.0.0.0", wildcard],
    ["::", wildcard],
    ["[::]", wildcard],
    ["errand.internal", wildcard],
    [
      "10.5.5.5",
      [
        ["10.5.5.5", "::ffff:10.5.5.5", "64:ff9b::a05:505"],
        ["10.5.5.6", "127.0.0.1"],
      ],
    ],
  ];
  for (const [host, [own = [], other = []]] of rows) {
    const rules = egressRules({ deny: [], allow: [], listening: { host, port: 3000 } });
    for (const address of own) {
      assert.match(refusal(rules, address, 3000) ?? "", /Errand's own/, `${host} ${address}`);
      assert.equal(refusal(rules, address, 3001), null, `${host} ${address}`);
    }
    for (const address of other) assert.equal(refusal(rules, address, 3000), null, `${host} ${address}`);
  }
  const named = egressRules({ deny: [], allow: ["127.0.0.1"], listening: LISTENING });
  assert.equal(refusal(named, "127.0.0.1", 3000), null);
});

test("a URL without a port means that of its scheme", () => {
  for (const [port, own, other] of [
    [80, "http", "https"],
    [443, "https", "http"],
  ] as const) {
    const rules = egressRules({ deny: [], allow: [], listening: { host: "127.0.0.1", port } });
    assert.match(refusalOfUrl(rules, new URL(`${own}://localhost/`)) ?? "", /Errand's own/);
    assert.equal(refusalOfUrl(rules, new URL(`${other}://localhost/`)), null);
  }
});

test("what is not an address is refused", () => {
  for (const text of ["", "example.com", "127.1", "1.2.3.4.5", "::g"])
    assert.match(refusal(DEFAULTS, text, 80) ?? "", /not an IP/);
});

test("what the URL alone shows is refused in every spelling", () => {
  const urls = [
    ...LOOPBACK_HOSTS.map((host) => `http://${host}/`),
    "http:\\\\127.0.0.1\\",
    "http:/127.0.0.1/",
    "http:127.0.0.1",
    "HTTP://127.0.0.1:8080/",
    "http://localhost/",
    "http://LOCALHOST/",
    "http://localhost./",
    "http://a.b.localhost/",
    "http://ｌocalhost/",
  ];
  for (const text of urls) {
    const url = new URL(text);
    assert.notEqual(refusalOfUrl(NO_PRIVATE, url), null, `${text} → ${url.hostname}`);
    assert.equal(refusalOfUrl(DEFAULTS, url), null, `${text} → ${url.hostname}`);
  }
  for (const text of [
    "http://2852039166/",
    "http://0xa9fea9fe/latest",
    "http://169.254.169.254/",
    "http://[::ffff:a9fe:a9fe]/",
    "http://0/",
  ]) {
    assert.notEqual(refusalOfUrl(DEFAULTS, new URL(text)), null, text);
  }
});

test("a name is judged when it is resolved, unless it is always loopback", () => {
  for (const name of ["example.com", "notlocalhost", "localhost.example.com", "127.0.0.1.nip.io"]) {
    assert.equal(refusalOfUrl(NO_PRIVATE, new URL(`http://${name}/`)), null, name);
  }
  // The URL parser reads a backslash as a slash, and so does whoever connects: the host is what stands before it.
  assert.equal(new URL("http://example.com\\@127.0.0.1/").hostname, "example.com");
  assert.match(refusalOfUrl(DEFAULTS, new URL("http://localhost:3000/")) ?? "", /Errand's own/);
  assert.match(
    refusalOfUrl(
      egressRules({ deny: [], allow: [], listening: { host: "::", port: 443 } }),
      new URL("https://localhost/"),
    ) ?? "",
    /own/,
  );
});

test("what was said of a host on one port does not hold on Errand's own, nor the other way round", () => {
  const rules = egressRules({ deny: [], allow: [], listening: LISTENING });
  for (const host of ["127.0.0.1", "localhost", "[::1]"]) {
    for (const port of [8080, 3000, 8080, 3000]) {
      const said = refusalOfUrl(rules, new URL(`http://${host}:${port}/`));
      assert.equal(said !== null, port === 3000, `${host}:${port}`);
    }
  }
});
