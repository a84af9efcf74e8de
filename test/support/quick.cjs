const secondsByFile = require("./slow-files.json");

/** Leaves out the slow files, for `npm run test:quick`. https://jestjs.io/docs/cli#--filterfile */
module.exports = async (paths) => ({
  filtered: paths.filter((path) => !Object.keys(secondsByFile).some((name) => path.endsWith(`/test/${name}.test.ts`))),
});
