import { vi } from "vitest";

// A set-up file: each test file of a process loads its modules again, with the ones that it replaces.
vi.resetModules();
