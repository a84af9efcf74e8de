"""Runs verify_webhook.py on the test vectors and prints one line per vector. Arguments: its folder, the vectors file."""

import json
import sys

sys.path.insert(0, sys.argv[1])
sys.dont_write_bytecode = True
from verify_webhook import WebhookVerificationError, verify_webhook  # noqa: E402

with open(sys.argv[2], encoding="utf-8") as file:
    vectors = json.load(file)["vectors"]
for vector in vectors:
    try:
        delivery_id, payload = verify_webhook(
            vector["body"].encode(), vector["headers"], vector["secrets"], vector["scheme"], now=vector["now"]
        )
        is_test = payload.get("data", {}).get("test") is True
        print("verified", delivery_id, payload.get("event", ""), "true" if is_test else "false")
    except WebhookVerificationError as error:
        print(error.code)
