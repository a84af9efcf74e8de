import { Argument, type Command, type Option } from "commander";
import { print } from "../terminal/terminal.ts";

/* Shell completion scripts. They are generated from the commands, and complete without starting a program. */

const help = `
Examples:
  $ source <(svc completion bash)              # this shell only; for all, append the line to ~/.bashrc
  $ source <(svc completion zsh)               # this shell only; for all, append the line to ~/.zshrc`;

const shells = { bash, zsh };

export function addCompletion(program: Command): void {
  program
    .command("completion")
    .summary("print a shell completion script")
    .description("Prints a script that completes the commands, options and option values of svc in a shell.")
    .addArgument(new Argument("<shell>", "the shell").choices(Object.keys(shells)))
    .addHelpText("after", help)
    .action((shell: keyof typeof shells) => print(shells[shell](completionPoints(program))));
}

/** A position on the command line, and the words that can follow. */
interface CompletionPoint {
  /** The commands so far: "keys create"; "" for `svc` itself. */
  path: string;
  words: string[];
  options: { flags: string[]; value: OptionValue; isVariadic?: boolean }[];
}

/** The kind of an option's value, or the list of its values. */
type OptionValue = "none" | "text" | "file" | string[];

function completionPoints(command: Command, path = "", inherited: readonly Option[] = []): CompletionPoint[] {
  const { commands, options } = command;
  const visible = [...options, ...inherited].filter(({ hidden }) => !hidden);
  const point = {
    path,
    words: [...commands.flatMap(namesOf), ...command.registeredArguments.flatMap(({ argChoices = [] }) => argChoices)],
    options: [...visible.map(toOption), { flags: ["--help"], value: "none" as const }],
  };
  const children = commands.flatMap((child) =>
    namesOf(child).flatMap((name) => completionPoints(child, `${path} ${name}`.trim(), visible)),
  );
  return [point, ...children];
}

const namesOf = (command: Command): string[] => [command.name(), ...command.aliases()];

function toOption({ long, short, argChoices, flags, required, optional, variadic }: Option) {
  const hasValue = required || optional;
  const value: OptionValue = argChoices ?? (!hasValue ? "none" : flags.includes("<path>") ? "file" : "text");
  return {
    flags: [long, short].filter((flag) => flag !== undefined && flag !== null),
    value,
    isVariadic: variadic,
  };
}

function bash(points: CompletionPoint[]): string {
  const values = points.flatMap(({ path, options }) =>
    options.flatMap(({ flags, value }) =>
      value === "none" ? [] : flags.map((flag) => `    "${path} ${flag}") ${bashReply(value)} ;;`),
    ),
  );
  const words = points.map(({ path, words, options }) => {
    const next = [...words, ...options.flatMap(({ flags }) => flags)];
    return `    "${path}") words="${next.join(" ")}" ;;`;
  });
  const paths = points.filter(({ path }) => path !== "").map(({ path }) => `"${path}"`);
  const variadic = points.flatMap(({ path, options }) =>
    options.flatMap(({ flags, isVariadic }) => (isVariadic ? flags.map((flag) => `"${path} ${flag}"`) : [])),
  );
  return `# bash completion of svc. source <(svc completion bash)
_svc() {
  local cur="\${COMP_WORDS[COMP_CWORD]}" prev="\${COMP_WORDS[COMP_CWORD-1]}" path="" longer words="" i
  COMPREPLY=()
  for ((i = 1; i < COMP_CWORD; i++)); do
    longer="$path\${path:+ }\${COMP_WORDS[i]}"
    case "$longer" in
      ${paths.join("|")}) path="$longer" ;;
    esac
  done
  # Values after the first one of an option that takes several.
  for ((i = COMP_CWORD - 1; i > 1; i--)); do
    [[ "\${COMP_WORDS[i]}" == -* ]] || continue
    case "$path \${COMP_WORDS[i]}" in
      ${variadic.join("|")}) [[ "$cur" == -* ]] || prev="\${COMP_WORDS[i]}" ;;
    esac
    break
  done
  case "$path $prev" in
${values.join("\n")}
  esac
  case "$path" in
${words.join("\n")}
  esac
  COMPREPLY=($(compgen -W "$words" -- "$cur"))
}
complete -F _svc svc`;
}

function bashReply(value: "text" | "file" | string[]): string {
  if (value === "file") return 'COMPREPLY=($(compgen -f -- "$cur")); return';
  if (value === "text") return "return";
  return `COMPREPLY=($(compgen -W "${value.join(" ")}" -- "$cur")); return`;
}

/** Uses the bash script, which zsh supports through bashcompinit. */
function zsh(points: CompletionPoint[]): string {
  return `# zsh completion of svc. source <(svc completion zsh)
autoload -U +X compinit && compinit -u
autoload -U +X bashcompinit && bashcompinit
${bash(points)}`;
}
