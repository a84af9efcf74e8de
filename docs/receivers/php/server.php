<?php

declare(strict_types=1);

/*
 * A receiver: WEBHOOK_SECRET=whsec_… php -S 127.0.0.1:4000 server.php, or behind nginx with PHP-FPM.
 *
 * PHP forgets everything after a request. So a delivery becomes a file of the folder INBOX, named by its id, which a worker reads and
 * empties (an empty file remains as the mark of its id). A database does the same with the id as the key of a row.
 */

require __DIR__ . '/verify-webhook.php';

const MAX_BYTES = 1_000_000;

function respond(int $status, string $text = ''): void
{
    http_response_code($status);
    exit($text);
}

// Without a php.ini, PHP writes warnings into the response, which then is 200: the delivery is not retried.
ini_set('display_errors', '0');

// Any other error is 500: the delivery is retried.
set_exception_handler(function (Throwable $error): void {
    error_log((string) $error);
    http_response_code(500);
});

if ($_SERVER['REQUEST_METHOD'] !== 'POST') {
    respond(405);
}
$body = file_get_contents('php://input', length: MAX_BYTES + 1);
if (strlen($body) > MAX_BYTES) {
    respond(413);
}
// Several during a rotation, with spaces between them.
$secrets = preg_split('/\s+/', (string) getenv('WEBHOOK_SECRET'), -1, PREG_SPLIT_NO_EMPTY);
try {
    ['id' => $id, 'payload' => $payload] = verify_webhook($body, getallheaders(), $secrets);
} catch (WebhookVerificationError $error) {
    respond($error->getCode(), $error->getMessage());
}
if (($payload['data']['test'] ?? false) !== true) {
    $inbox = getenv('INBOX') ?: __DIR__ . '/inbox';
    if (!is_dir($inbox)) {
        mkdir($inbox, 0700, true);
    }
    $name = $inbox . '/' . hash('sha256', $id);
    // Whole or not at all, and only once: a link fails if its name exists.
    $draft = tempnam($inbox, 'new');
    try {
        file_put_contents($draft, $body) === strlen($body) || throw new RuntimeException('The delivery was not stored.');
        if (@link($draft, $name)) {
            error_log($payload['event'] . ' ' . $id);
        } elseif (!file_exists($name)) {
            throw new RuntimeException('The delivery was not stored.');
        }
    } finally {
        // Also after an error: each retry would leave one.
        unlink($draft);
    }
}
respond(204);
