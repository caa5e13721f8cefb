/** `errand mcp` from the sources, as a process of its own. */
import { Client } from "../../src/client/client.ts";
import { serveMcpOverStdio } from "../../src/mcp/stdio.ts";
import { OPERATIONS } from "../../src/operations/index.ts";

const { ERRAND_URL: url = "", ERRAND_API_KEY: key = "" } = process.env;
await serveMcpOverStdio(new Client({ url, key }), OPERATIONS, {
  input: process.stdin,
  output: process.stdout,
});
