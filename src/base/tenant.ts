/** Whose data it is: one account in one mode. Nothing is ever looked up without it. */

export const MODES = ["test", "live"] as const;
export type Mode = (typeof MODES)[number];

export interface Tenant {
  readonly accountId: string;
  readonly mode: Mode;
}

export function tenantKey(tenant: Tenant): string {
  return `${tenant.accountId}/${tenant.mode}`;
}
