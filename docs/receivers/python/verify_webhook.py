"""Verifies that a delivery comes from the platform. Copy this file: it needs Python 3.8 or later, and nothing else."""

import base64
import hashlib
import hmac
import json
import re
import time


class WebhookVerificationError(Exception):
    """A delivery that must not be believed: answer 401. `code` says which check failed, and is no secret."""

    def __init__(self, code):
        super().__init__(code)
        self.code = code


def verify_webhook(body, headers, secrets, scheme="standard", tolerance_seconds=300, now=None):
    """
    Returns (id, payload): the parsed body, and what to recognise a repeated delivery by.

    body: the bytes as they came. headers: a mapping of names to values, in upper or lower case.
    secrets: the webhook's secret, "whsec_" included, or a list of those that may have signed. now: Unix time in seconds.
    scheme: "standard" is webhook-signature, which covers id, time and body. "body" is X-Service-Signature, which covers
    the body alone, so that a copy of a delivery verifies for ever; the id is the SHA-256 of the body then.
    Raises WebhookVerificationError, or TypeError or ValueError when the caller is wrong.
    """
    if not isinstance(body, (bytes, bytearray)):
        raise TypeError("body must be the raw body, in bytes: verify before anything parses it")
    if secrets is None:
        raise TypeError("secrets must be the webhook's secret, or a list of such: it is None, so is it set at all?")
    secrets = [secrets] if isinstance(secrets, str) else list(secrets)
    if not secrets or not all(re.fullmatch("whsec_[A-Za-z0-9+/]+={0,2}", secret) for secret in secrets):
        raise ValueError("secrets must be whsec_ and what follows it, with nothing around it")
    given = {name.lower(): value for name, value in headers.items()}
    if scheme == "standard":
        delivery_id = _verify_standard(body, given, secrets, tolerance_seconds, time.time() if now is None else now)
    elif scheme == "body":
        delivery_id = _verify_body(body, given, secrets)
    else:
        raise ValueError('scheme must be "standard" or "body"')
    try:
        return delivery_id, json.loads(body)
    except ValueError:
        raise WebhookVerificationError("invalid_payload") from None


def _verify_standard(body, headers, secrets, tolerance_seconds, now):
    """Standard Webhooks. The key is what the part of the secret after whsec_ decodes to in base64."""
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
    keys = [base64.b64decode(secret[len("whsec_") :] + "==") for secret in secrets]
    digests = [hmac.new(key, signed, hashlib.sha256).digest() for key in keys]
    _require_match(["v1," + base64.b64encode(digest).decode() for digest in digests], re.split(r",?\s+", signature))
    return delivery_id


def _verify_body(body, headers, secrets):
    """The key is the whole secret as text."""
    given = _required(headers, "x-service-signature") + "," + headers.get("x-service-signature-previous", "")
    expected = ["sha256=" + hmac.new(secret.encode(), body, hashlib.sha256).hexdigest() for secret in secrets]
    _require_match(expected, re.split(r",\s*", given))
    return hashlib.sha256(body).hexdigest()


def _required(headers, name):
    value = headers.get(name)
    if not value:
        raise WebhookVerificationError("missing_header")
    return value


def _require_match(expected, given):
    """Compares all with all, each pair in constant time."""
    if not any([hmac.compare_digest(_bytes(one), _bytes(other)) for one in expected for other in given]):
        raise WebhookVerificationError("no_matching_signature")


def _bytes(text):
    # Headers may hold anything, and the comparison of texts takes ASCII only.
    return text.encode("utf-8", "replace")
