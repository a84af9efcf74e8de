import { createRequire } from "node:module";
import { types } from "node:util";
import { TestEnvironment } from "jest-environment-node";

/*
 * Jest's environment for Node, in which the test files of a worker share the libraries that strip-types.mjs names. Otherwise
 * each file compiles them again and runs them before V8 has optimized them: a quarter of the CPU time of a file that
 * calls AWS.
 */

const isKind = { Date: types.isDate, Error: types.isNativeError, Map: types.isMap, Set: types.isSet };

/**
 * Lets `instanceof` recognize the objects of the other side too, as in a process without Jest: a test file and the libraries
 * outside it have a `Date` each. https://nodejs.org/api/vm.html#vmcreatecontextcontextobject-options
 */
function recognizeOthers(global) {
  for (const [name, isOfKind] of Object.entries(isKind)) {
    const type = global[name];
    Object.defineProperty(type, Symbol.hasInstance, {
      configurable: true,
      value(object) {
        return this === type ? isOfKind(object) : Function.prototype[Symbol.hasInstance].call(this, object);
      },
    });
  }
}

recognizeOthers(globalThis);

// Ends a worker at once when nothing keeps it alive. By itself Node first frees the heap, which took a worker of all files longer
// than the 500 ms after which Jest kills it and reports that a test leaks. https://nodejs.org/api/process.html#event-beforeexit
process.once("beforeExit", () => process.exit());

export default class SharedLibraries extends TestEnvironment {
  #env = Object.getOwnPropertyDescriptor(process, "env");
  #timeZone = process.env.TZ;

  constructor(config, context) {
    super(config, context);
    // A test file may set it by `@jest-environment-options {"timeZone": "…"}`: on machines in UTC, local time and UTC are the same.
    const { timeZone } = config.projectConfig.testEnvironmentOptions;
    if (timeZone !== undefined) process.env.TZ = timeZone;
    const { global } = this;
    recognizeOthers(global);
    global.requireShared = createRequire(import.meta.url);
    // The libraries see the environment variables of the test file.
    Object.defineProperty(process, "env", { configurable: true, get: () => global.process.env });
  }

  async teardown() {
    Object.defineProperty(process, "env", this.#env);
    if (this.#timeZone === undefined) delete process.env.TZ;
    else process.env.TZ = this.#timeZone;
    await super.teardown();
  }
}
