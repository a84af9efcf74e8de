<?php

// Runs verify-webhook.php on the test vectors and prints one line per vector. Arguments: its folder, the vectors file.

declare(strict_types=1);

require $argv[1] . '/verify-webhook.php';

foreach (json_decode(file_get_contents($argv[2]), true)['vectors'] as $vector) {
    try {
        ['id' => $id, 'payload' => $payload] = verify_webhook(
            $vector['body'],
            // A list is the same as a repeated header (RFC 9110, section 5.3).
            array_map(fn (string $value): array => explode(', ', $value), $vector['headers']),
            $vector['secrets'],
            $vector['scheme'],
            now: $vector['now']
        );
        $isTest = ($payload['data']['test'] ?? false) === true;
        echo "verified $id ", $payload['event'] ?? '', ' ', $isTest ? 'true' : 'false', "\n";
    } catch (WebhookVerificationError $error) {
        echo $error->getMessage(), "\n";
    }
}
