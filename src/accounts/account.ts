/** Accounts, their keys and signing secrets as data. */
import type { Mode, Tenant } from "../base/tenant.ts";
import type { Scope } from "./scopes.ts";

export interface Account {
  readonly id: string;
  readonly name: string;
  readonly createdAt: number;
}

/** A key as it is listed: everything but the key. */
export interface ApiKey {
  readonly id: string;
  readonly accountId: string;
  readonly mode: Mode;
  readonly name: string;
  /** Its first and last characters. */
  readonly hint: string;
  readonly scopes: readonly Scope[];
  readonly createdAt: number;
}

/** Who is calling: what a valid key stands for. */
export interface Principal {
  readonly tenant: Tenant;
  readonly keyId: string;
  readonly keyName: string;
  readonly scopes: readonly Scope[];
}

export interface SigningSecret {
  readonly id: string;
  /** `whsec_` and base64. */
  readonly secret: string;
  readonly createdAt: number;
  /** When it stops signing; null for the current one. */
  readonly expiresAt: number | null;
}
