// Preloaded into a measured process by harness.ts. Writes its CPU time to file descriptor 3 at exit.
process.on("exit", () => {
  const { user, system } = process.cpuUsage();
  require("node:fs").writeSync(3, String(user + system));
});
