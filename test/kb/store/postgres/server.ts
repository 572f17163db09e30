import type { TestProject } from "vitest/node";
import { openPostgresStore } from "../../../../src/kb/store/postgres/open.ts";
import { serversFolder } from "../../../memory-folder.ts";
import { findPgvector, findPrograms, startCluster } from "./cluster.ts";

declare module "vitest" {
  interface ProvidedContext {
    /** The server of the tests, or why there is none. */
    postgres: { readonly address: string; readonly programs: string } | { readonly missing: string };
  }
}

/** A database with the tables of an empty store, which the tests copy. */
export const TEMPLATE = "kbsync_template";

/** The project whose server has pgvector. */
const PGVECTOR_PROJECT = "postgres-pgvector";

/** Starts a server for the tests of the project. */
export async function setup(project: TestProject): Promise<(() => Promise<void>) | undefined> {
  const hasPgvector = project.name === PGVECTOR_PROJECT;
  const programs = hasPgvector ? findPgvector() : findPrograms();
  if ("missing" in programs) {
    process.stderr.write(`The tests of the project ${project.name} are skipped. ${programs.missing}\n`);
    project.provide("postgres", programs);
    return undefined;
  }
  const cluster = startCluster(programs.folder, serversFolder());
  try {
    cluster.sql(`CREATE DATABASE ${TEMPLATE}`);
    if (hasPgvector) cluster.sql("CREATE EXTENSION vector", TEMPLATE);
    await (await openPostgresStore(cluster.url(TEMPLATE))).close();
  } catch (error) {
    await cluster.remove();
    throw error;
  }
  project.provide("postgres", { address: cluster.url("postgres"), programs: programs.folder });
  return cluster.remove;
}
