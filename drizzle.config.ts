/** Where `npm run migrate:generate` reads the schema and drafts the next migration, for a person to review. */
import { defineConfig } from "drizzle-kit";

export default defineConfig({
  dialect: "sqlite",
  schema: "./src/store/sqlite/schema.ts",
  out: "./drizzle",
});
