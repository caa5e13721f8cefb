/** Preloaded with --require: makes each fdatasync 5 ms slower, as a cheap disk would. */
const fs = require("node:fs");

const SLOWER_MS = 5;
const { fdatasync } = fs;
fs.fdatasync = (fd, callback) => {
  setTimeout(() => fdatasync(fd, callback), SLOWER_MS);
};
