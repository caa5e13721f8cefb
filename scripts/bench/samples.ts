/** What a service takes while it runs, looked at from outside: memory, files, and the rows of each table. */
import { statSync } from "node:fs";
import { join } from "node:path";
import Database from "better-sqlite3";
import type { Server } from "./server.ts";

export interface Sample {
  readonly atMs: number;
  readonly memoryMb: number;
  readonly databaseMb: number;
  readonly logMb: number;
  readonly rows: ReadonlyMap<string, number>;
}

export class Sampler {
  readonly samples: Sample[] = [];
  private readonly errand: Server;
  private readonly file: string;
  private readonly db: Database.Database;
  private readonly counts: readonly (readonly [string, Database.Statement<[], number>])[];

  /** Opens the database read-only, beside the service, as any other program may. */
  constructor(errand: Server) {
    this.errand = errand;
    this.file = join(errand.folder, "errand.db");
    this.db = new Database(this.file, { readonly: true });
    const tables = this.db
      .prepare<[], string>("SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite_%'")
      .pluck()
      .all();
    this.counts = tables.map((table) => [
      table,
      this.db.prepare<[], number>(`SELECT count(*) FROM "${table}"`).pluck(),
    ]);
  }

  take(): void {
    this.samples.push({
      atMs: performance.now(),
      memoryMb: this.errand.memoryMb(),
      databaseMb: megabytes(this.file),
      logMb: megabytes(`${this.file}-wal`),
      rows: new Map(this.counts.map(([table, count]) => [table, count.get() ?? 0])),
    });
  }

  close(): void {
    this.db.close();
  }
}

const megabytes = (file: string) => (statSync(file, { throwIfNoEntry: false })?.size ?? 0) / 2 ** 20;

/** The slope of the straight line through the points by least squares. */
export function slope(points: readonly (readonly [x: number, y: number])[]): number {
  const mean = (of: 0 | 1) => points.reduce((sum, point) => sum + point[of], 0) / points.length;
  const [meanX, meanY] = [mean(0), mean(1)];
  let [up, across] = [0, 0];
  for (const [x, y] of points) {
    up += (x - meanX) * (y - meanY);
    across += (x - meanX) ** 2;
  }
  return up / across;
}
