/** The small numbers that stand for tenants, queues and lanes in rows, each looked up once and remembered. */
import { type Mode, type Tenant, tenantKey } from "../../base/tenant.ts";
import type { Lane } from "../store.ts";
import type { Connection } from "./connection.ts";

export interface QueueEntry {
  readonly id: number;
  readonly tenantId: number;
  readonly name: string;
}

/**
 * Rows of these three tables keep their meaning for as long as they exist, so remembering them is safe. Of them only
 * lanes are ever removed: see {@link Directory.forgetLane}.
 */
export class Directory {
  private readonly tenantIds = new Map<string, number>();
  private readonly tenants = new Map<number, Tenant>();
  private readonly queueIds = new Map<string, number>();
  private readonly queues = new Map<number, QueueEntry>();
  private readonly laneIds = new Map<string, Lane>();
  private readonly sql;

  constructor(db: Connection) {
    this.sql = {
      tenantId: db.prepare<[string, string], { id: number }>(
        "SELECT id FROM tenants WHERE account_id = ? AND mode = ?",
      ),
      tenant: db.prepare<[number], { account_id: string; mode: Mode }>(
        "SELECT account_id, mode FROM tenants WHERE id = ?",
      ),
      queueId: db.prepare<[number, string], { id: number }>(
        "SELECT id FROM queues WHERE tenant = ? AND name = ?",
      ),
      queue: db.prepare<[number], { tenant: number; name: string }>(
        "SELECT tenant, name FROM queues WHERE id = ?",
      ),
      addQueue: db.prepare<[number, string, number], { id: number }>(
        "INSERT INTO queues (tenant, name, created_at) VALUES (?, ?, ?) RETURNING id",
      ),
      laneId: db.prepare<[number, string], { id: number }>(
        "SELECT id FROM lanes WHERE queue = ? AND origin = ?",
      ),
      addLane: db.prepare<[number, string], { id: number }>(
        "INSERT INTO lanes (queue, origin) VALUES (?, ?) RETURNING id",
      ),
    };
  }

  /** A rollback may have taken back what was remembered during the transaction. */
  forget(): void {
    for (const map of [this.tenantIds, this.tenants, this.queueIds, this.queues, this.laneIds]) map.clear();
  }

  /** Null for a tenant that does not exist. */
  tenantId(tenant: Tenant): number | null {
    const key = tenantKey(tenant);
    const known = this.tenantIds.get(key);
    if (known !== undefined) return known;
    const row = this.sql.tenantId.get(tenant.accountId, tenant.mode);
    if (row === undefined) return null;
    this.tenantIds.set(key, row.id);
    return row.id;
  }

  /** For callers whose tenant came from a valid key, and so exists. */
  existingTenantId(tenant: Tenant): number {
    const id = this.tenantId(tenant);
    if (id === null) throw new Error(`no tenant ${tenantKey(tenant)}`);
    return id;
  }

  tenant(id: number): Tenant {
    return remember(this.tenants, id, () => {
      const row = found(this.sql.tenant.get(id), "tenant", id);
      return { accountId: row.account_id, mode: row.mode };
    });
  }

  queueId(tenantId: number, name: string): number | null {
    const key = `${tenantId} ${name}`;
    const known = this.queueIds.get(key);
    if (known !== undefined) return known;
    const row = this.sql.queueId.get(tenantId, name);
    if (row === undefined) return null;
    this.queueIds.set(key, row.id);
    return row.id;
  }

  /** Makes the queue when it is new; inside a transaction only. */
  ensureQueue(tenantId: number, name: string, now: number): number {
    const known = this.queueId(tenantId, name);
    if (known !== null) return known;
    const { id } = found(this.sql.addQueue.get(tenantId, name, now), "queue", name);
    this.queueIds.set(`${tenantId} ${name}`, id);
    return id;
  }

  queue(id: number): QueueEntry {
    return remember(this.queues, id, () => {
      const row = found(this.sql.queue.get(id), "queue", id);
      return { id, tenantId: row.tenant, name: row.name };
    });
  }

  /** Makes the lane when it is new; inside a transaction only. */
  ensureLane(queueId: number, origin: string): Lane {
    const key = `${queueId} ${origin}`;
    const known = this.laneIds.get(key);
    if (known !== undefined) return known;
    const row =
      this.sql.laneId.get(queueId, origin) ?? found(this.sql.addLane.get(queueId, origin), "lane", origin);
    const lane = { id: row.id, queueId, origin };
    this.laneIds.set(key, lane);
    return lane;
  }

  /** For the transaction that removes the lane: whoever needs one again makes it anew. */
  forgetLane(queueId: number, origin: string): void {
    this.laneIds.delete(`${queueId} ${origin}`);
  }
}

function remember<K, V>(map: Map<K, V>, key: K, look: () => V): V {
  const known = map.get(key);
  if (known !== undefined) return known;
  const value = look();
  map.set(key, value);
  return value;
}

function found<T>(row: T | undefined, what: string, key: unknown): T {
  if (row === undefined) throw new Error(`no ${what} ${String(key)}`);
  return row;
}
