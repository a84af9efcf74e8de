import { useState } from "preact/hooks";
import type { Certification as Report, WebhookRef } from "../../../client/src/client.ts";
import { ApiError } from "../../../client/src/errors.ts";
import { certificationCheckMeanings } from "../../../client/src/values.ts";
import { certificationHref, withQuery } from "../data/route.ts";
import { shortId } from "../data/short.ts";
import { duration } from "../data/time.ts";
import { Badge, EmptyState, ErrorMessage, Skeleton, Table, Time } from "../parts/components.tsx";
import { ConfirmDialog } from "../parts/dialog.tsx";
import { useLoaded } from "../parts/use-loaded.ts";

const RUNNING_INTERVAL_MS = 1_500;

interface CertificationProps {
  webhookRef: WebhookRef;
  isAdmin: boolean;
  /** The report to show: that of the address, or the last one. */
  certificationId: string | undefined;
}

/** Checks a receiver with valid and with forged requests, and shows the report. */
export function Certification({ webhookRef, isAdmin, certificationId }: CertificationProps) {
  const [isOpen, setOpen] = useState(false);
  const button = isAdmin && (
    <button type="button" class="plain small" onClick={() => setOpen(true)}>
      Certify…
    </button>
  );
  return (
    <section class="list" aria-label="Certification">
      <div class="head">
        <h2>Certification</h2>
        <p class="lead">
          Checks that the receiver verifies signatures: it must accept valid requests, and reject forged, stale and cut
          ones.
        </p>
        {certificationId !== undefined && button}
      </div>
      {certificationId === undefined ? (
        <EmptyState
          title="Not certified yet"
          action={button}
          command={`svc webhooks certify ${shortId(webhookRef.webhookId)}`}
        >
          A minute now finds what the first deployment would: a wrong secret, or a receiver that accepts forged
          requests.
        </EmptyState>
      ) : (
        <ReportView webhookRef={webhookRef} certificationId={certificationId} />
      )}
      {isOpen && (
        <ConfirmDialog
          title="Certify this receiver?"
          verb="Certify"
          look="primary"
          act={async (client, leadTo) => {
            const { id } = await client.certifyWebhook(webhookRef);
            setOpen(false);
            leadTo(withQuery(certificationHref(webhookRef.projectId, webhookRef.webhookId), { id }));
          }}
          onClose={() => setOpen(false)}
        >
          <p>
            Sends six sample requests to the receiver now, also if the webhook is disabled. Each has the header{" "}
            <code>X-Service-Probe</code>, and <code>data.test</code> is <code>true</code>. They are no deliveries and
            disable nothing.
          </p>
        </ConfirmDialog>
      )}
    </section>
  );
}

function ReportView({ webhookRef, certificationId }: { webhookRef: WebhookRef; certificationId: string }) {
  const { data: report, error } = useLoaded(
    certificationId,
    (client) => client.getCertification(webhookRef, certificationId),
    ({ status }) => (status === "running" ? RUNNING_INTERVAL_MS : undefined),
  );
  return (
    <>
      {error instanceof ApiError && error.status === 404 ? (
        <p class="fine">The report is no longer kept, only its result. Certify again for a new one.</p>
      ) : (
        <ErrorMessage error={error} />
      )}
      {report === undefined && !error && <Skeleton rows={4} />}
      {report && <ReportContent report={report} />}
    </>
  );
}

function ReportContent({ report: { status, passed, created_at, checks, note } }: { report: Report }) {
  const failedCount = checks.filter((check) => !check.passed).length;
  return (
    <>
      <p role="status" class="facts">
        {status === "running" && <Badge tone="warning">running: up to half a minute</Badge>}
        {status === "unfinished" && <Badge tone="bad">not finished: certify again</Badge>}
        {status === "finished" && passed && <Badge tone="good">passed</Badge>}
        {status === "finished" && !passed && (
          <Badge tone="bad">
            {failedCount} of {checks.length} checks not passed
          </Badge>
        )}{" "}
        <span class="fine">
          requested <Time at={created_at} />
        </span>
      </p>
      {note !== undefined && <p class="note neutral">{note}</p>}
      {checks.length > 0 && (
        <Table columns={["Result", "Check", "Expected", "Response"]}>
          {checks.map((check) => (
            <tr key={check.check}>
              <td>
                <Badge tone={check.passed ? "good" : "bad"}>{check.passed ? "passed" : "not passed"}</Badge>
              </td>
              <td class="breaks">
                {certificationCheckMeanings[check.check] ?? check.check}
                {check.hint !== null && <p class="hint">{check.hint}</p>}
              </td>
              <td data-label="expected">{check.expected}</td>
              <td data-label="response">
                {check.status_code ?? check.error_code ?? ""}{" "}
                {check.duration_ms !== null && <span class="fine">{duration(check.duration_ms)}</span>}
              </td>
            </tr>
          ))}
        </Table>
      )}
    </>
  );
}
