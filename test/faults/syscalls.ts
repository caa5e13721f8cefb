/** Reads what strace recorded of a process: its writes, syncs and answers, in the order in which they began and ended. */
import { createReadStream } from "node:fs";
import { createInterface } from "node:readline";

/** A system call as it begins; `result` is there once it has ended. */
export interface SystemCall {
  readonly name: string;
  /** The path of the descriptor that comes first, or of the file that is opened; empty where there is none. */
  readonly path: string;
  readonly descriptor: number;
  /** The arguments as strace writes them. */
  readonly text: string;
  result: number | null;
}

export interface TraceEvent {
  readonly moment: "begin" | "end";
  readonly call: SystemCall;
}

/** All that has to do with files and with answers. `-y` names the file behind a descriptor, `-xx` keeps every byte. */
export function straceCommand(traceFile: string): readonly [string, ...string[]] {
  const calls = "openat,pwrite64,write,writev,fsync,fdatasync,ftruncate,unlink,rename,renameat,renameat2";
  const quiet = ["-e", "signal=none"];
  return [
    "strace",
    "-f",
    "-y",
    "-xx",
    "-s",
    "70000",
    "--seccomp-bpf",
    ...quiet,
    "-e",
    `trace=${calls}`,
    "-o",
    traceFile,
  ];
}

/** A line is a whole call, the begin of one (`<unfinished ...>`), or the end of one (`<... name resumed>`). */
const LINE = /^(\d+)\s+(?:<\.\.\. \w+ resumed>|(\w+)\()/;
const RESULT = /\)\s+= (-?\d+)[^)]*$/;

export async function* readTrace(traceFile: string): AsyncGenerator<TraceEvent> {
  const unfinished = new Map<string, SystemCall>();
  for await (const line of createInterface({ input: createReadStream(traceFile, "latin1") })) {
    const [start, thread = "", name] = LINE.exec(line) ?? [];
    if (start === undefined) continue;
    const result = Number(RESULT.exec(line.slice(-200))?.[1] ?? Number.NaN);
    if (name === undefined) {
      const call = unfinished.get(thread);
      if (call === undefined) continue;
      unfinished.delete(thread);
      call.result = result;
      yield { moment: "end", call };
      continue;
    }
    const call = callOf(name, line.slice(start.length));
    yield { moment: "begin", call };
    if (line.endsWith("<unfinished ...>")) {
      unfinished.set(thread, call);
    } else {
      call.result = result;
      yield { moment: "end", call };
    }
  }
}

function callOf(name: string, text: string): SystemCall {
  const [, descriptor, behind] = /^(\d+)<((?:[^>\\]|\\.)*)>/.exec(text) ?? [];
  const path = name === "openat" ? (strings(text)[0] ?? Buffer.of()).toString() : unescaped(behind ?? "");
  return { name, path, descriptor: Number(descriptor ?? -1), text, result: null };
}

/** The bytes of every string among the arguments. */
function strings(text: string): Buffer[] {
  return [...text.matchAll(/"((?:\\x[0-9a-f]{2})*)"/g)].map(([, hex = ""]) => bytesOf(hex));
}

/** The bytes that a `write`, `pwrite64` or `writev` was given. */
export function written(call: SystemCall): Buffer {
  return Buffer.concat(strings(call.text));
}

function bytesOf(escaped: string): Buffer {
  return Buffer.from(escaped.replaceAll("\\x", ""), "hex");
}

function unescaped(path: string): string {
  return path.startsWith("\\x") ? bytesOf(path).toString() : path;
}
