require("./start.cjs").start(__filename);
