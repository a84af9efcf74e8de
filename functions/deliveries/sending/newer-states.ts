import { isFinal } from "../../foundation/events/catalogue.ts";
import {
  createDeploymentEvent,
  deliveryIdOf,
  type EventContent,
  parseJsonExactly,
  sequenceOf,
} from "../../foundation/events/deployment-event.ts";
import { log } from "../../foundation/platform/log.ts";
import { addSeconds } from "../../foundation/platform/time.ts";
import { firstIdAt, timeOfUuid } from "../../foundation/platform/uuid.ts";
import { listsEvent, receives } from "../../webhooks/webhook/event-filter.ts";
import type { Webhook } from "../../webhooks/webhook/webhook.ts";
import * as events from "../feed/event-store.ts";
import { eventIdOfRow, LATE_MS } from "../feed/feed-position.ts";
import { change } from "../line/change-delivery.ts";
import type { Delivery } from "../line/delivery.ts";
import * as deliveries from "../line/delivery-store.ts";
import { superseded } from "../line/delivery-transitions.ts";

/*
 * The webhooks with `delivery: latest`: a state of a deployment is sent only while none is newer. What is newer is read
 * from the events of the project, which are stored before any delivery of them: one read before a request, no write and
 * no lock. So a state that is newer supersedes an older one from its arrival on, whether or not it was accepted by
 * then: its own delivery is retried.
 *
 *   started   ── fails ─────────── retry: superseded by the delivery of failed
 *   failed           stored ── sent ── accepted
 */

/** After the end of all ids. */
const END = "g";

/**
 * Upper bound on the megabytes that one read returns, from the oldest on: newer states of a deployment are near it, and
 * the feed of a busy project is long. What is behind the bound supersedes nothing.
 */
const MAX_PAGES = 10;

/**
 * How much later than its time a change of a webhook may be stored: an event that arrives in between may have been
 * compared with the webhook as it was before.
 */
const CHANGE_SECONDS = 10;

/** The newer states of deployments of a project. A visit has one, so that its deliveries share what is read. */
export class NewerStates {
  readonly #projectId: string;
  /** By deployment, then by id. */
  readonly #known = new Map<string, Map<string, events.EventHead>>();
  /** The events from this id on are known, as far as they were stored at `#readAt`; undefined = none is. */
  #from: string | undefined;
  #readAt = 0;
  /** Up to which id they are known. */
  #until = END;
  /** From which id on the next read begins. */
  #wanted = END;
  #reading = Promise.resolve();
  #next: Promise<void> | undefined;
  readonly #maxPages: number;

  constructor(projectId: string, maxPages = MAX_PAGES) {
    this.#projectId = projectId;
    this.#maxPages = maxPages;
  }

  /** Returns the id of a delivery to this webhook with a newer state than this one: the newest that is known. */
  async newerThan(delivery: Delivery, webhook: Webhook): Promise<string | undefined> {
    // What was found stays: a line of old states needs no read for each of them.
    const known = await this.#newest(delivery, webhook);
    if (known !== undefined) return known;
    const from = firstIdAt(timeOfUuid(delivery.id).getTime());
    if (from < this.#wanted) this.#wanted = from;
    this.#next ??= this.#readNext();
    await this.#next;
    return this.#newest(delivery, webhook);
  }

  async #newest({ id, event, deployment_id }: Delivery, webhook: Webhook): Promise<string | undefined> {
    const sequence = sequenceOf(id, isFinal(event));
    const newer = [...(this.#known.get(deployment_id ?? "")?.values() ?? [])]
      .map((head) => ({ head, sequence: sequenceOf(eventIdOfRow(head), isFinal(head.event)) }))
      .filter((other) => other.sequence > sequence)
      .toSorted((one, other) => other.sequence - one.sequence);
    for (const { head } of newer) {
      const deliveryId = await this.#deliveryOf(head, webhook);
      if (deliveryId !== undefined) return deliveryId;
    }
    return undefined;
  }

  /** Reads what is stored by now. Callers share a read that has not begun. */
  async #readNext(): Promise<void> {
    await this.#reading.catch(() => {});
    this.#next = undefined;
    this.#reading = this.#read();
    return this.#reading;
  }

  async #read(): Promise<void> {
    const [from, readAt] = [this.#wanted, Date.now()];
    this.#wanted = END;
    if (this.#from !== undefined && from <= this.#until) {
      // A late event has a copy where it was stored.
      await this.#readBetween(firstIdAt(this.#readAt - LATE_MS), END);
      if (from < this.#from) {
        await this.#readBetween(from, this.#from);
        this.#from = from;
      }
    } else {
      this.#until = await this.#readBetween(from, END);
      this.#from = from;
    }
    this.#readAt = readAt;
  }

  /** @returns the id up to which the events were read: the end, or that of the last one within the bound */
  async #readBetween(first: string, end: string): Promise<string> {
    let pages = 0;
    for await (const page of events.eventPages(this.#projectId, first, end)) {
      for (const head of page) {
        const ofDeployment = this.#known.get(head.deployment_id) ?? new Map<string, events.EventHead>();
        this.#known.set(head.deployment_id, ofDeployment.set(eventIdOfRow(head), head));
      }
      const last = page.at(-1);
      if (++pages === this.#maxPages && last) return last.id;
    }
    return end;
  }

  /** Returns the id of the delivery of an event to a webhook; undefined = there may be none. */
  async #deliveryOf(head: events.EventHead, webhook: Webhook): Promise<string | undefined> {
    if (!listsEvent(webhook.events, head.event)) return undefined;
    const body = await events.bodyOf(this.#projectId, eventIdOfRow(head));
    if (body === undefined) return undefined;
    const event = createDeploymentEvent(parseJsonExactly(body) as EventContent);
    if (!receives(webhook, event)) return undefined;
    const id = deliveryIdOf(event, webhook.id);
    // It was planned for certain if the webhook has not changed since. Otherwise its row shows it.
    const { created_at, subscribed_at = created_at } = webhook;
    const isPlanned = head.received_at >= addSeconds(new Date(subscribed_at), CHANGE_SECONDS);
    return isPlanned || (await deliveries.find(webhook.id, id)) ? id : undefined;
  }
}

/**
 * Ends a delivery whose state is no longer the newest of its deployment, if its webhook wants the latest only.
 * @param basis the delivery as it was read; without a version, it has no row
 * @returns whether it is not to be sent
 */
export async function supersede(basis: Delivery, webhook: Webhook, states: NewerStates): Promise<boolean> {
  if (webhook.delivery !== "latest" || basis.deployment_id === null) return false;
  const by = await states.newerThan(basis, webhook);
  if (by === undefined) return false;
  await change(basis, superseded(basis, by));
  log.info("delivery superseded", { delivery_id: basis.id, superseded_by: by });
  return true;
}
