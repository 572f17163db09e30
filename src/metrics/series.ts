import { Counter, Gauge, Histogram, type Registry } from "prom-client";

/** Adds metrics to a registry, each by its name, its help and the names of its labels. */
export interface Series {
  readonly gauge: (name: string, help: string, ...labelNames: string[]) => Gauge;
  readonly counter: (name: string, help: string, ...labelNames: string[]) => Counter;
  /** `buckets` are upper bounds in seconds, ascending. */
  readonly histogram: (
    name: string,
    help: string,
    buckets: readonly number[],
    ...labelNames: string[]
  ) => Histogram;
}

/** Opens the series of a registry. */
export function openSeries(registry: Registry): Series {
  const registers = [registry];
  return {
    gauge: (name, help, ...labelNames) => new Gauge({ name, help, labelNames, registers }),
    counter: (name, help, ...labelNames) => new Counter({ name, help, labelNames, registers }),
    histogram: (name, help, buckets, ...labelNames) =>
      new Histogram({ name, help, labelNames, buckets: [...buckets], registers }),
  };
}
