"""Verifies webhook deliveries of the platform. Copy this file; it needs only Python 3.8 or later."""

import base64
import hashlib
import hmac
import json
import re
import time


class WebhookVerificationError(Exception):
    """
    The delivery is not accepted: respond with `status`. It is 401 if the delivery is not authentic, and 400 for the code
    "invalid_payload", whose signature is valid. `code` is the failed check; it is not secret.
    """

    def __init__(self, code):
        super().__init__(code)
        self.code = code
        self.status = 400 if code == "invalid_payload" else 401


def verify_webhook(body, headers, secrets, scheme="standard", tolerance_seconds=300, now=None):
    """
    Returns (id, payload): an id that is the same for every attempt of a delivery, and the parsed body.

    body: the raw body, in bytes. headers: a mapping of names to values, in any case.
    secrets: the webhook's whole secret, usually with "whsec_", or the project's public key, "whpk_…", or a list, of which one must match. now: Unix time in seconds.
    scheme: "standard" is webhook-signature, which covers id, time and body. "body" is X-Service-Signature, which covers
    only the body, so that a replayed delivery always verifies; the id is then the SHA-256 of the body.
    Raises WebhookVerificationError, or TypeError or ValueError when an argument is not valid.
    """
    if not isinstance(body, (bytes, bytearray)):
        raise TypeError("body must be the raw body, in bytes: verify it before it is parsed")
    if secrets is None:
        raise TypeError("secrets must be the webhook's secret, or a list of secrets, but it is None: is the setting missing?")
    secrets = [secrets] if isinstance(secrets, str) else list(secrets)
    if not secrets or not all(len(_bytes(secret)) >= 16 and secret == secret.strip() for secret in secrets):
        raise ValueError("secrets must be complete (16 bytes or more), without surrounding whitespace")
    given = {name.lower(): value for name, value in headers.items()}
    if scheme == "standard":
        delivery_id = _verify_standard(body, given, secrets, tolerance_seconds, time.time() if now is None else now)
    elif scheme == "body":
        delivery_id = _verify_body(body, given, secrets)
    else:
        raise ValueError('scheme must be "standard" or "body"')
    try:
        return delivery_id, json.loads(body)
    except (ValueError, RecursionError):
        raise WebhookVerificationError("invalid_payload") from None


def _verify_standard(body, headers, secrets, tolerance_seconds, now):
    """Standard Webhooks."""
    delivery_id = _required(headers, "webhook-id")
    timestamp = _required(headers, "webhook-timestamp")
    signature = _required(headers, "webhook-signature")
    if not re.fullmatch("[0-9]{1,12}", timestamp):
        raise WebhookVerificationError("invalid_timestamp")
    age = int(now) - int(timestamp)
    if age > tolerance_seconds:
        raise WebhookVerificationError("timestamp_too_old")
    if age < -tolerance_seconds:
        raise WebhookVerificationError("timestamp_too_new")
    signed = _bytes(f"{delivery_id}.{timestamp}.") + body
    given = re.split(r",?\s+", signature)
    if any(_is_public_key(key) and _is_signed_by(key, signed, given[:10]) for key in secrets):
        return delivery_id
    digests = [hmac.new(_standard_key(secret), signed, hashlib.sha256).digest() for secret in _without_public_keys(secrets)]
    _require_match(["v1," + base64.b64encode(digest).decode() for digest in digests], given)
    return delivery_id


def _is_public_key(text):
    return text.startswith("whpk_")


def _without_public_keys(secrets):
    """Rejects a public key as a secret: it is published, so any caller could sign with it."""
    return [secret for secret in secrets if not _is_public_key(secret)]


def _is_signed_by(key, signed, given):
    """The public key of a project verifies the signatures v1a. Needs the package cryptography."""
    from cryptography.exceptions import InvalidSignature
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

    public_key = Ed25519PublicKey.from_public_bytes(base64.b64decode(key[len("whpk_") :]))
    for each in given:
        try:
            if each.startswith("v1a,"):
                public_key.verify(base64.b64decode(each[4:]), bytes(signed))
                return True
        except (InvalidSignature, ValueError):
            pass
    return False


def _standard_key(secret):
    """The key is the part of the secret after whsec_, decoded from base64. Any other secret is the key itself, as text."""
    encoded = re.fullmatch("whsec_((?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}(?:==)?|[A-Za-z0-9+/]{3}=?)?)", secret)
    return base64.b64decode(encoded[1] + "==") if encoded else secret.encode()


def _verify_body(body, headers, secrets):
    """The key is the whole secret as text."""
    given = _required(headers, "x-service-signature") + "," + headers.get("x-service-signature-previous", "")
    expected = ["sha256=" + hmac.new(secret.encode(), body, hashlib.sha256).hexdigest() for secret in _without_public_keys(secrets)]
    _require_match(expected, re.split(r",\s*", given))
    return hashlib.sha256(body).hexdigest()


def _required(headers, name):
    value = headers.get(name)
    if not value:
        raise WebhookVerificationError("missing_header")
    return value


def _require_match(expected, given):
    """Compares each expected with each given signature, in constant time per pair."""
    if not any([hmac.compare_digest(_bytes(one), _bytes(other)) for one in expected for other in given]):
        raise WebhookVerificationError("no_matching_signature")


def _bytes(text):
    # Headers can contain any character, but compare_digest accepts only ASCII strings.
    return text.encode("utf-8", "replace")
