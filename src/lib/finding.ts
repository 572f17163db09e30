/** A problem that a check found, described for people. */
export interface Finding {
  /** Stable kebab-case name of the check. */
  readonly check: string;
  /**
   * `damage`: data is lost or answers are wrong. `failure`: nothing is lost, but something fails or soon will. `warning`:
   * everything works, but needs attention.
   */
  readonly level: "damage" | "failure" | "warning";
  /** The file, folder or row. */
  readonly subject: string;
  /** The problem, with the expected and the actual state. */
  readonly message: string;
  /** Advice for a person. */
  readonly remedy: string;
}
