// Lets the unbundled sources import .sql, .html, .css and .svg files as strings, as esbuild does in the bundle.
// Use: node --import tsx --import ./scripts/text-modules.mjs src/main.ts
import { readFileSync } from "node:fs";
import { registerHooks } from "node:module";

registerHooks({
  load(url, context, nextLoad) {
    if (!/^file:.*\.(sql|html|css|svg)$/.test(url)) return nextLoad(url, context);
    const text = readFileSync(new URL(url), "utf8");
    return { format: "module", source: `export default ${JSON.stringify(text)};`, shortCircuit: true };
  },
});
