// Preloaded into programs that tests and benchmarks start: ends them when the process at the other end of their standard
// input ends, even after kill -9.
process.stdin.on("end", () => process.exit()).on("error", () => process.exit());
process.stdin.resume().unref?.();
