/** Returns the named fields of an object that are set: neither `undefined` nor `null`. */
export const present = <Fields extends object, Name extends keyof Fields>(of: Fields, names: readonly Name[]) =>
  Object.fromEntries(names.flatMap((name) => (of[name] == null ? [] : [[name, of[name]]]))) as {
    [Each in Name]?: NonNullable<Fields[Each]>;
  };
