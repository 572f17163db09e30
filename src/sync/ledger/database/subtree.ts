/**
 * Returns an SQL condition: a column of paths is at or below the path `@below`; any path if that is NULL. "0" follows "/" in
 * byte order, so the range is everything below a folder.
 */
export function isAtOrBelow(column: string): string {
  return `(@below IS NULL OR ${column} = @below OR (${column} >= @below || '/' AND ${column} < @below || '0'))`;
}
