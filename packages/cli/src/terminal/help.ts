import { Argument, type Command } from "commander";
import { usageError } from "./exit-codes.ts";

/** Adds `svc help [command...]`, which shows what `svc <command> --help` shows. Call it after all other commands are added. */
export function addHelp(program: Command): void {
  const path = new Argument("[command...]", "a command, such as webhooks create");
  // For shell completion only. `choices` would reject subcommands.
  path.argChoices = program.commands.map((command) => command.name());
  program
    .command("help")
    .summary("show help for a command")
    .description("Shows help for a command, or for svc itself.")
    .addArgument(path)
    .action((words: string[]) => findCommand(program, words).outputHelp());
}

/** @throws CommandError when there is no such command */
function findCommand(program: Command, words: string[]): Command {
  return words.reduce((command, word) => {
    const child = command.commands.find((each) => [each.name(), ...each.aliases()].includes(word));
    if (child) return child;
    throw usageError(`Unknown command: svc ${words.join(" ")}.`, "List the commands: svc --help");
  }, program);
}
