<?php

// Runs verify-webhook.php on the test vectors and prints one line per vector. Arguments: its folder, the vectors file.

declare(strict_types=1);

require $argv[1] . '/verify-webhook.php';

function result_of(array $vector, array $headers): string
{
    try {
        ['id' => $id, 'payload' => $payload] = verify_webhook(
            $vector['body'],
            $headers,
            $vector['secrets'],
            $vector['scheme'],
            now: $vector['now']
        );
        $isTest = ($payload['data']['test'] ?? false) === true;
        return "verified $id " . ($payload['event'] ?? '') . ' ' . ($isTest ? 'true' : 'false');
    } catch (WebhookVerificationError $error) {
        return $error->getMessage();
    }
}

foreach (json_decode(file_get_contents($argv[2]), true)['vectors'] as $vector) {
    // A list is the same as a repeated header (RFC 9110, section 5.3).
    $lists = array_map(fn (string $value): array => explode(', ', $value), $vector['headers']);
    // As $_SERVER has them: repeated headers are one value, with commas.
    $server = [];
    foreach ($vector['headers'] as $name => $value) {
        $joined = strtolower($name) === 'webhook-signature' ? str_replace(' ', ', ', $value) : $value;
        $server['HTTP_' . strtoupper(strtr($name, '-', '_'))] = $joined;
    }
    $results = array_map(fn (array $headers): string => result_of($vector, $headers), [$lists, $server]);
    echo implode(', and from $_SERVER: ', array_unique($results)), "\n";
}
