/** Schedules and their ledger in SQLite. How they fire is in firing.ts. */
import { and, asc, desc, eq, gt, gte, isNull, lt, or, type SQL, sql as sqlText } from "drizzle-orm";
import { Problem } from "../../base/errors.ts";
import type { Occurrence, Schedule } from "../../schedules/schedule.ts";
import type { Page, PageRequest, ScheduleStore } from "../store.ts";
import { type FiringParts, firingCommands } from "./firing.ts";
import { countOfPage, readCursor } from "./read.ts";
import type { Rows } from "./rows.ts";
import { type ScheduleRow, ScheduleRows, tell } from "./schedule-rows.ts";
import { occurrences, schedules } from "./schema.ts";
import type { Transaction } from "./writer.ts";

interface Parts extends FiringParts {
  readonly rows: Rows;
}

/** Lines of a ledger that one transaction removes: a few milliseconds. */
const REMOVED_AT_ONCE = 2_000;

/** A next run that is no further ahead than this is left alone where nothing else shows that it is wrong. */
const SURELY_RIGHT_MS = 86_400_000;

export function scheduleCommands(parts: Parts): ScheduleStore {
  const { db, orm, writer, directory, once } = parts;
  const rows = new ScheduleRows(directory, parts.rows);
  const ledger = {
    /** The newest line that can go beforehand: those after it are few enough to go with the schedule. */
    newestToRemove: db
      .prepare<[number], number>(
        `SELECT scheduled_for FROM occurrences WHERE schedule = ? ORDER BY scheduled_for DESC LIMIT 1 OFFSET ${REMOVED_AT_ONCE}`,
      )
      .pluck(),
    remove: db.prepare<[number, number]>(
      `DELETE FROM occurrences WHERE (schedule, scheduled_for) IN
         (SELECT schedule, scheduled_for FROM occurrences WHERE schedule = ? AND scheduled_for <= ?
          ORDER BY scheduled_for LIMIT ${REMOVED_AT_ONCE})`,
    ),
  };

  async function removeLines(seq: number, upTo: number): Promise<void> {
    for (;;) {
      const removed = await writer.write(() => ledger.remove.run(seq, upTo).changes, false);
      if (removed < REMOVED_AT_ONCE) return;
    }
  }

  const find = (tenantId: number, id: string) =>
    orm
      .select()
      .from(schedules)
      .where(and(eq(schedules.tenant, tenantId), eq(schedules.id, id)))
      .get();

  const findByName = (tenantId: number, name: string) =>
    orm
      .select()
      .from(schedules)
      .where(and(eq(schedules.tenant, tenantId), eq(schedules.name, name)))
      .get();

  function refuseTakenName(tenantId: number, name: string | null, id: string): void {
    if (name === null) return;
    const other = findByName(tenantId, name);
    if (other === undefined || other.id === id) return;
    const detail = `Schedule ${other.id} has the name ${JSON.stringify(name)}. Take another name, or replace that schedule with PUT /v1/schedules/by-name/${encodeURIComponent(name)}.`;
    throw new Problem("name_taken", detail);
  }

  function add(transaction: Transaction, schedule: Schedule): Schedule {
    orm.insert(schedules).values(rows.columns(schedule)).run();
    tell(transaction, schedule, "created", schedule.createdAt);
    return schedule;
  }

  /** What the rule made of the schedule: the same object as `before` where it changed nothing. */
  function revise(
    transaction: Transaction,
    row: ScheduleRow,
    rule: (schedule: Schedule) => Schedule,
  ): { before: Schedule; after: Schedule } {
    const before = rows.read(row);
    const after = rule(before);
    if (after === before) return { before, after };
    refuseTakenName(row.tenant, after.name, row.id);
    orm.update(schedules).set(rows.columns(after)).where(eq(schedules.seq, row.seq)).run();
    tell(transaction, after, "updated", after.updatedAt);
    return { before, after };
  }

  /** A page of those that are not paused, of any tenant. */
  function oldestFirst({ limit, cursor }: PageRequest, condition: SQL | undefined): Page<Schedule> {
    const after = cursor === null ? undefined : gt(schedules.seq, readCursor(cursor));
    const found = orm
      .select()
      .from(schedules)
      .where(and(eq(schedules.paused, false), condition, after))
      .orderBy(asc(schedules.seq))
      .limit(limit + 1)
      .all();
    const items = found.slice(0, limit);
    return {
      items: items.map((row) => rows.read(row)),
      nextCursor: found.length > limit ? String(items.at(-1)?.seq) : null,
    };
  }

  return {
    ...firingCommands(parts, rows),

    create(schedule, onceOnly) {
      const tenantId = directory.existingTenantId(schedule.tenant);
      return writer.write((transaction) =>
        once(tenantId, onceOnly, schedule.createdAt, () => {
          refuseTakenName(tenantId, schedule.name, schedule.id);
          return add(transaction, schedule);
        }),
      );
    },

    async get(tenant, id) {
      const row = find(directory.existingTenantId(tenant), id);
      return row === undefined ? null : rows.read(row);
    },

    async list(tenant, page) {
      const before = page.cursor === null ? undefined : lt(schedules.seq, readCursor(page.cursor));
      const isMine = eq(schedules.tenant, directory.existingTenantId(tenant));
      // How long a text is stands before it: none is read for this.
      const sizes = orm
        .select({ seq: schedules.seq, bytes: sqlText<number>`octet_length(${schedules.template})` })
        .from(schedules)
        .where(and(isMine, before))
        .orderBy(desc(schedules.seq))
        .limit(page.limit + 1)
        .all();
      const last = sizes[countOfPage(sizes, page.limit) - 1];
      if (last === undefined) return { items: [], nextCursor: null };
      const found = orm
        .select()
        .from(schedules)
        .where(and(isMine, before, gte(schedules.seq, last.seq)))
        .orderBy(desc(schedules.seq))
        .all();
      return {
        items: found.map((row) => rows.read(row)),
        nextCursor: last === sizes.at(-1) ? null : String(last.seq),
      };
    },

    update(tenant, id, rule) {
      const tenantId = directory.existingTenantId(tenant);
      return writer.write((transaction) => {
        const row = find(tenantId, id);
        return row === undefined ? null : revise(transaction, row, rule).after;
      });
    },

    createOrUpdate(tenant, name, make, rule) {
      const tenantId = directory.existingTenantId(tenant);
      return writer.write((transaction) => {
        const row = findByName(tenantId, name);
        if (row === undefined) return { schedule: add(transaction, make()), previous: null };
        const { before, after } = revise(transaction, row, rule);
        return { schedule: after, previous: before };
      });
    },

    async remove(tenant, id, now) {
      const tenantId = directory.existingTenantId(tenant);
      const seq = find(tenantId, id)?.seq;
      if (seq === undefined) return false;
      // A long ledger goes beforehand and in parts, since one transaction would hold everything else up. Its newest lines
      // go with the schedule: if it stays, because of a crash or a full disk, they prove which due times made their job.
      const upTo = ledger.newestToRemove.get(seq);
      if (upTo !== undefined) await removeLines(seq, upTo);
      return writer.write((transaction) => {
        const row = find(tenantId, id);
        if (row === undefined) return false;
        orm.delete(schedules).where(eq(schedules.seq, row.seq)).run();
        tell(transaction, { ...rows.read(row), nextRunAt: null }, "deleted", now);
        return true;
      });
    },

    async occurrences(tenant, id, page) {
      const row = find(directory.existingTenantId(tenant), id);
      if (row === undefined) return null;
      const before = page.cursor === null ? null : readCursor(page.cursor);
      const found = orm
        .select()
        .from(occurrences)
        .where(
          and(
            eq(occurrences.schedule, row.seq),
            before === null ? undefined : lt(occurrences.scheduledFor, before),
          ),
        )
        .orderBy(desc(occurrences.scheduledFor))
        .limit(page.limit + 1)
        .all();
      const items = found
        .slice(0, page.limit)
        .map(({ schedule: _schedule, ...occurrence }): Occurrence => occurrence);
      return { items, nextCursor: found.length > page.limit ? String(items.at(-1)?.scheduledFor) : null };
    },

    async unarmed(now, page) {
      const isOpen = or(isNull(schedules.endsAt), gt(schedules.endsAt, now));
      return oldestFirst(page, and(isNull(schedules.nextRunAt), isOpen));
    },

    async ahead(now, page) {
      const isAhead = or(
        gt(schedules.updatedAt, now),
        // Retention may have removed what else would show it. What is off by less comes back within that time.
        gt(schedules.nextRunAt, now + SURELY_RIGHT_MS),
        // One seek in each ledger.
        sqlText`EXISTS (SELECT 1 FROM occurrences WHERE schedule = ${schedules.seq} AND scheduled_for > ${now})`,
      );
      return oldestFirst(page, isAhead);
    },
  };
}
