<?php

declare(strict_types=1);

// Verifies webhook deliveries of the platform. Copy this file; it needs only PHP 8.0 or later.

/**
 * The delivery is not accepted: respond with getCode(). It is 401 if the delivery is not authentic, and 400 for
 * "invalid_payload", whose signature is valid. The message is the failed check; it is not secret.
 */
final class WebhookVerificationError extends Exception
{
    public function __construct(string $check)
    {
        parent::__construct($check, $check === 'invalid_payload' ? 400 : 401);
    }
}

/**
 * @param string          $body    the raw body: file_get_contents('php://input')
 * @param array           $headers names and values, in any case: getallheaders(), or $_SERVER
 * @param string|string[] $secrets the webhook's whole secret, usually with "whsec_", or the project's public key,
 *                                 "whpk_…", or a list, of which one must match
 * @param string          $scheme  "standard" is webhook-signature, which covers id, time and body. "body" is
 *                                 X-Service-Signature, which covers only the body, so that a replayed delivery always
 *                                 verifies; the id is then the SHA-256 of the body.
 * @param int|null        $now     Unix time in seconds
 *
 * @return array{id: string, payload: array} an id that is the same for every attempt, and the parsed body
 *
 * @throws WebhookVerificationError
 * @throws InvalidArgumentException when an argument is not valid
 */
function verify_webhook(
    string $body,
    array $headers,
    string|array $secrets,
    string $scheme = 'standard',
    int $toleranceSeconds = 300,
    ?int $now = null
): array {
    $secrets = (array) $secrets;
    foreach ($secrets ?: [''] as $secret) {
        if (!is_string($secret) || strlen($secret) < 16 || trim($secret) !== $secret) {
            throw new InvalidArgumentException('secrets must be complete (16 bytes or more), without surrounding whitespace');
        }
    }
    $given = [];
    foreach ($headers as $name => $value) {
        $plain = preg_replace('/\Ahttp-/', '', strtr(strtolower((string) $name), '_', '-'));
        $given[$plain] = is_array($value) ? implode(', ', $value) : (string) $value;
    }
    $id = match ($scheme) {
        'standard' => verify_standard_webhook($body, $given, $secrets, $toleranceSeconds, $now ?? time()),
        'body' => verify_webhook_body($body, $given, $secrets),
        default => throw new InvalidArgumentException('scheme must be "standard" or "body"'),
    };
    $payload = json_decode($body, true, 512, JSON_BIGINT_AS_STRING);
    if (!is_array($payload)) {
        throw new WebhookVerificationError('invalid_payload');
    }
    return ['id' => $id, 'payload' => $payload];
}

/** Standard Webhooks. */
function verify_standard_webhook(string $body, array $headers, array $secrets, int $toleranceSeconds, int $now): string
{
    $id = required_webhook_header($headers, 'webhook-id');
    $timestamp = required_webhook_header($headers, 'webhook-timestamp');
    $signature = required_webhook_header($headers, 'webhook-signature');
    if (!preg_match('/\A[0-9]{1,12}\z/', $timestamp)) {
        throw new WebhookVerificationError('invalid_timestamp');
    }
    $age = $now - (int) $timestamp;
    if ($age > $toleranceSeconds) {
        throw new WebhookVerificationError('timestamp_too_old');
    }
    if ($age < -$toleranceSeconds) {
        throw new WebhookVerificationError('timestamp_too_new');
    }
    $given = preg_split('/,?\s+/', $signature);
    foreach (array_filter($secrets, 'is_webhook_public_key') as $key) {
        if (is_signed_by($key, "$id.$timestamp.$body", array_slice($given, 0, 10))) {
            return $id;
        }
    }
    $expected = array_map(function (string $secret) use ($id, $timestamp, $body): string {
        return 'v1,' . base64_encode(hash_hmac('sha256', "$id.$timestamp.$body", standard_webhook_key($secret), true));
    }, without_public_keys($secrets));
    require_webhook_match($expected, $given);
    return $id;
}

function is_webhook_public_key(string $text): bool
{
    return str_starts_with($text, 'whpk_');
}

/** Rejects a public key as a secret: it is published, so any caller could sign with it. */
function without_public_keys(array $secrets): array
{
    return array_filter($secrets, fn (string $secret): bool => !is_webhook_public_key($secret));
}

/** The public key of a project, whpk_ and the key in base64, verifies the signatures v1a. Needs the extension sodium, which PHP has. */
function is_signed_by(string $key, string $signed, array $given): bool
{
    $publicKey = base64_decode(substr($key, strlen('whpk_')));
    foreach ($given as $each) {
        $signature = str_starts_with($each, 'v1a,') ? base64_decode(substr($each, 4)) : '';
        if (
            strlen($signature) === SODIUM_CRYPTO_SIGN_BYTES
            && sodium_crypto_sign_verify_detached($signature, $signed, $publicKey)
        ) {
            return true;
        }
    }
    return false;
}

/** The key is the part of the secret after whsec_, decoded from base64. Any other secret is the key itself, as text. */
function standard_webhook_key(string $secret): string
{
    $isEncoded = preg_match(
        '~\Awhsec_((?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}(?:==)?|[A-Za-z0-9+/]{3}=?)?)\z~',
        $secret,
        $parts
    );
    return $isEncoded ? base64_decode($parts[1]) : $secret;
}

/** The key is the whole secret as text. */
function verify_webhook_body(string $body, array $headers, array $secrets): string
{
    $given = required_webhook_header($headers, 'x-service-signature')
        . ',' . ($headers['x-service-signature-previous'] ?? '');
    $expected = array_map(fn (string $secret): string => 'sha256=' . hash_hmac('sha256', $body, $secret), without_public_keys($secrets));
    require_webhook_match($expected, preg_split('/,\s*/', $given));
    return hash('sha256', $body);
}

function required_webhook_header(array $headers, string $name): string
{
    if (($headers[$name] ?? '') === '') {
        throw new WebhookVerificationError('missing_header');
    }
    return $headers[$name];
}

/** Compares each expected with each given signature, in constant time per pair. */
function require_webhook_match(array $expected, array $given): void
{
    $isMatch = false;
    foreach ($expected as $one) {
        foreach ($given as $other) {
            $isMatch = hash_equals($one, $other) || $isMatch;
        }
    }
    if (!$isMatch) {
        throw new WebhookVerificationError('no_matching_signature');
    }
}
