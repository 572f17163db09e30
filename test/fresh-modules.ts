import { vi } from "vitest";

// A set-up file: each test file of a process loads its modules anew, with the ones that it replaces.
vi.resetModules();
