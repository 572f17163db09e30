/** How many tokens a bucket gets and holds. */
export interface BucketRule {
  /** Sustained rate. */
  readonly perMinute: number;
  /** Tokens of a full bucket. */
  readonly burst: number;
}

/** Token buckets that the processes of a store share. Times come from the database's clock. They need not survive a crash of the database. */
export interface TokenBuckets {
  /** Takes up to `wanted` tokens from a bucket, which is full when it is used first. */
  take(bucket: string, rule: BucketRule, wanted: number): Promise<Taken>;
  /** Removes up to `limit` buckets that are full again. Returns how many. */
  sweep(limit: number): Promise<number>;
}

/** The tokens taken from a bucket. */
export interface Taken {
  readonly tokens: number;
  /** Time until the bucket has a token again; 0 if it has one. */
  readonly waitMs: number;
}
