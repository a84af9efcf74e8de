import type { ComponentChildren } from "preact";
import type { Client } from "../../../client/src/client.ts";
import { type Column, EmptyState, ErrorMessage, Heading, Skeleton, Table } from "./components.tsx";
import { useDialog } from "./dialog.tsx";
import { useLoaded } from "./use-loaded.ts";

const LIST_INTERVAL_MS = 15_000;

/** Loads the items of a list at an interval. With the dialog that is open over them. */
export function useList<Item>(key: string, load: (client: Client) => Promise<Item[]>) {
  const list = useLoaded(key, load, LIST_INTERVAL_MS);
  return { ...list, ...useDialog(list.reload) };
}

interface ListScreenProps<Item> {
  title: string;
  /** Whether the list is a part of a screen. Default: it is the screen. */
  isSection?: boolean;
  list: Pick<ReturnType<typeof useList<Item>>, "data" | "error" | "dialog">;
  /** Opens the form for a new item; undefined = the user may not create one. */
  create?: { label: string; open(): void } | undefined;
  lead: ComponentChildren;
  empty: { title: string; text?: string; command?: string };
  columns: Column[];
  /** Returns the cells of an item. */
  children: (item: Item) => ComponentChildren;
}

/** A list of things that users create and delete: keys, service accounts, trusted workflows. */
export function ListScreen<Item extends { id: string }>(props: ListScreenProps<Item>) {
  const { title, isSection = false, list, create, lead, empty, columns, children } = props;
  const { data: items, error, dialog } = list;
  const button = create && (
    <button type="button" class={isSection ? "plain small" : "primary"} onClick={create.open}>
      {create.label}
    </button>
  );
  const content = (
    <>
      <div class="head">
        {isSection ? <h2>{title}</h2> : <Heading>{title}</Heading>}
        {isSection && lead}
        {items?.length !== 0 && button}
      </div>
      {!isSection && lead}
      <ErrorMessage error={error} />
      {items === undefined && !error && <Skeleton />}
      {items?.length === 0 && (
        <EmptyState title={empty.title} action={button} {...(empty.command && { command: empty.command })}>
          {empty.text}
        </EmptyState>
      )}
      {items !== undefined && items.length > 0 && (
        <Table columns={columns}>
          {items.map((item) => (
            <tr key={item.id}>{children(item)}</tr>
          ))}
        </Table>
      )}
      {dialog}
    </>
  );
  if (!isSection) return content;
  return (
    <section class="list" aria-label={title}>
      {content}
    </section>
  );
}
