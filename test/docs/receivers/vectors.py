"""Runs verify_webhook.py on the test vectors and prints one line per vector. Arguments: its folder, the vectors file."""

import json
import sys

sys.path.insert(0, sys.argv[1])
sys.dont_write_bytecode = True
from verify_webhook import WebhookVerificationError, verify_webhook  # noqa: E402


def result_of(vector, headers):
    try:
        delivery_id, payload = verify_webhook(
            vector["body"].encode(), headers, vector["secrets"], vector["scheme"], now=vector["now"]
        )
        is_test = payload.get("data", {}).get("test") is True
        return f"verified {delivery_id} {payload.get('event', '')} {'true' if is_test else 'false'}"
    except WebhookVerificationError as error:
        return error.code


def joined(headers):
    """As frameworks do: repeated headers are one value, with commas."""
    return {
        name: value.replace(" ", ", ") if name.lower() == "webhook-signature" else value for name, value in headers.items()
    }


with open(sys.argv[2], encoding="utf-8") as file:
    vectors = json.load(file)["vectors"]
for vector in vectors:
    results = [result_of(vector, headers) for headers in (vector["headers"], joined(vector["headers"]))]
    print(", and with joined headers: ".join(dict.fromkeys(results)))
