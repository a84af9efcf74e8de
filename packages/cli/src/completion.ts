import { Argument, type Command, type Option } from "commander";
import { print } from "./terminal.ts";

/* Scripts that complete `svc` in a shell. They are made from the commands themselves, and start no program when used. */

const help = `
Examples:
  $ source <(svc completion bash)              # this shell; for all: append the line to ~/.bashrc
  $ source <(svc completion zsh)               # likewise, ~/.zshrc
  $ svc completion fish > ~/.config/fish/completions/svc.fish`;

const shells = { bash, zsh, fish };

export function addCompletion(program: Command): void {
  program
    .command("completion")
    .summary("print the completion script of a shell")
    .description("Prints a script that completes svc's commands, options and their values.")
    .addArgument(new Argument("<shell>", "which shell").choices(Object.keys(shells)))
    .addHelpText("after", help)
    .action((shell: keyof typeof shells) => print(shells[shell](places(program))));
}

/** A point on the command line and what may come next. */
interface Place {
  /** The words so far: "" for the program itself, "keys create". */
  path: string;
  words: { word: string; says: string }[];
  options: { flags: string[]; says: string; takes: "nothing" | "text" | "file" | string[] }[];
}

function places(command: Command, path = "", inherited: readonly Option[] = []): Place[] {
  const { commands, options } = command;
  const own = [...options, ...inherited].filter(({ hidden }) => !hidden);
  const place = {
    path,
    words: [
      ...commands.map((child) => ({ word: child.name(), says: child.summary() || child.description() })),
      ...command.registeredArguments.flatMap(({ argChoices = [], description }) =>
        argChoices.map((word) => ({ word, says: description })),
      ),
    ],
    options: [...own.map(toOption), { flags: ["--help"], says: "how it is used", takes: "nothing" as const }],
  };
  const children = commands.flatMap((child) => places(child, `${path} ${child.name()}`.trim(), own));
  return [place, ...children];
}

function toOption({
  long,
  short,
  description,
  argChoices,
  flags,
  required,
  optional,
}: Option): Place["options"][number] {
  const names = [long, short].filter((flag) => flag !== undefined && flag !== null);
  const takesText = required || optional;
  const takes = argChoices ?? (!takesText ? "nothing" : flags.includes("<path>") ? "file" : "text");
  return { flags: names, says: description, takes };
}

function bash(all: Place[]): string {
  const values = all.flatMap(({ path, options }) =>
    options.flatMap(({ flags, takes }) =>
      takes === "nothing" ? [] : flags.map((flag) => `    "${path} ${flag}") ${replyFor(takes)} ;;`),
    ),
  );
  const next = all.map(({ path, words, options }) => {
    const offered = [...words.map(({ word }) => word), ...options.flatMap(({ flags }) => flags)];
    return `    "${path}") words="${offered.join(" ")}" ;;`;
  });
  const steps = all.filter(({ path }) => path !== "").map(({ path }) => `"${path}"`);
  return `# bash completion of svc. source <(svc completion bash)
_svc() {
  local cur="\${COMP_WORDS[COMP_CWORD]}" prev="\${COMP_WORDS[COMP_CWORD-1]}" path="" longer words="" i
  COMPREPLY=()
  for ((i = 1; i < COMP_CWORD; i++)); do
    longer="$path\${path:+ }\${COMP_WORDS[i]}"
    case "$longer" in
      ${steps.join("|")}) path="$longer" ;;
    esac
  done
  case "$path $prev" in
${values.join("\n")}
  esac
  case "$path" in
${next.join("\n")}
  esac
  COMPREPLY=($(compgen -W "$words" -- "$cur"))
}
complete -F _svc svc`;
}

function replyFor(takes: "text" | "file" | string[]): string {
  if (takes === "file") return 'COMPREPLY=($(compgen -f -- "$cur")); return';
  if (takes === "text") return "return";
  return `COMPREPLY=($(compgen -W "${takes.join(" ")}" -- "$cur")); return`;
}

/** zsh runs bash's. */
function zsh(all: Place[]): string {
  return `# zsh completion of svc. source <(svc completion zsh)
autoload -U +X compinit && compinit -u
autoload -U +X bashcompinit && bashcompinit
${bash(all)}`;
}

function fish(all: Place[]): string {
  const quoted = (text: string) => `'${text.replaceAll(/['\\]/g, "\\$&")}'`;
  const lines = all.flatMap(({ path, words, options }) => {
    const here = `-n '__svc_at "${path}"'`;
    const values = (takes: string | string[]) =>
      takes === "nothing"
        ? ""
        : takes === "file"
          ? " -r -F"
          : takes === "text"
            ? " -x"
            : ` -x -a ${quoted([...takes].join(" "))}`;
    return [
      ...words.map(({ word, says }) => `complete -c svc -f ${here} -a ${word} -d ${quoted(says)}`),
      ...options.map(
        ({ flags: [flag = ""], says, takes }) =>
          `complete -c svc -f ${here} -l ${flag.replace("--", "")} -d ${quoted(says)}${values(takes)}`,
      ),
    ];
  });
  const paths = all.map(({ path }) => quoted(path)).join(" ");
  return `# fish completion of svc. svc completion fish > ~/.config/fish/completions/svc.fish
function __svc_at
  set -l path ""
  for word in (commandline -opc)[2..]
    set -l longer (string trim "$path $word")
    contains -- "$longer" ${paths}; and set path $longer
  end
  test "$path" = "$argv[1]"
end
${lines.join("\n")}`;
}
