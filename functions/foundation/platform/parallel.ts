/**
 * Runs a function for each item, at most `limit` at a time. Returns the results in the order of the items.
 * @throws the first error, after all calls have ended
 */
export async function inParallel<Item, Result>(
  items: readonly Item[],
  limit: number,
  run: (item: Item) => Promise<Result>,
): Promise<Result[]> {
  const results = new Array<Result>(items.length);
  const rest = items.entries();
  // All workers share one iterator.
  const worker = async () => {
    for (const [index, item] of rest) results[index] = await run(item);
  };
  await allEnded(Array.from({ length: Math.min(limit, items.length) }, worker));
  return results;
}

/** Divides items into batches of at most `size`. */
export const inBatches = <Item>(items: readonly Item[], size: number): Item[][] =>
  Array.from({ length: Math.ceil(items.length / size) }, (_, index) => items.slice(index * size, (index + 1) * size));

/**
 * Waits until all promises have ended, also after one has failed, so that no call outlives the invocation of a function.
 * @throws the error of the first promise that failed
 */
export async function allEnded<const Promises extends readonly Promise<unknown>[]>(
  promises: Promises,
): Promise<{ -readonly [Index in keyof Promises]: Awaited<Promises[Index]> }> {
  await Promise.allSettled(promises);
  return Promise.all(promises);
}
