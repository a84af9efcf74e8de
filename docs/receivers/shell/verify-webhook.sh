#!/bin/sh
# Verifies that a delivery comes from the platform, with openssl. The body is in a file, byte for byte.
#
#   WEBHOOK_SECRET=whsec_… sh verify-webhook.sh standard body.json <webhook-id> <webhook-timestamp> <webhook-signature>
#   WEBHOOK_SECRET=whsec_… sh verify-webhook.sh body body.json <X-Service-Signature> [<X-Service-Signature-Previous>]
#
# Prints "verified" and exits with 0, or prints which check failed and exits with 1 (2: it was called wrongly). WEBHOOK_SECRET
# may hold several secrets with a space between two. `standard` covers id, time and body; `body` covers the body alone, and cannot tell a replay.
#
# For a look by hand, on a machine of your own: openssl takes the key as an argument, which other users of the machine can
# see. NOW (Unix time) and TOLERANCE_SECONDS (300) may be set.
set -eu
set -f # what comes in headers is no pattern
LC_ALL=C
export LC_ALL

fail() {
  echo "$1"
  exit 1
}

misuse() {
  echo "$1" >&2
  exit 2
}

bytes_in_hex() { od -An -v -tx1 | tr -d ' \n'; }

# Reads what is signed. $1: the key, in hex. Prints the HMAC-SHA256 in hex.
hmac() { openssl dgst -sha256 -mac HMAC -macopt "hexkey:$1" | sed 's/^.* //'; }

# The shell compares in no constant time. The HMACs of two texts under a key that nobody knows tell nothing about the texts.
is_same() {
  one=$(printf %s "$1" | hmac "$blind")
  other=$(printf %s "$2" | hmac "$blind")
  # Nothing equals nothing, and must not when openssl fails.
  [ ${#one} -eq 64 ] && [ "$one" = "$other" ]
}

# $1: the key, in hex. Prints what a signature of the scheme must be.
expected_signature() {
  if [ "$scheme" = body ]; then
    printf 'sha256=%s' "$(hmac "$1" < "$body")"
  else
    { printf '%s.%s.' "$id" "$timestamp"; cat "$body"; } |
      openssl dgst -sha256 -mac HMAC -macopt "hexkey:$1" -binary | { printf 'v1,'; openssl base64 -A; }
  fi
}

# $1: a secret. `body` takes the whole secret as the key, `standard` what follows whsec_, decoded from base64.
key_in_hex() {
  if [ "$scheme" = body ]; then printf %s "$1" | bytes_in_hex
  else printf %s "${1#whsec_}" | openssl base64 -d -A | bytes_in_hex; fi
}

[ $# -ge 2 ] || misuse "usage: see the top of the file"
scheme=$1 body=$2
blind=$(openssl rand -hex 32)
[ -r "$body" ] || misuse "the file of the body cannot be read"
[ -n "${WEBHOOK_SECRET:-}" ] || misuse "WEBHOOK_SECRET is not set"
for secret in $WEBHOOK_SECRET; do
  case ${secret#whsec_} in
  "$secret" | "" | *[!A-Za-z0-9+/=]*) misuse "WEBHOOK_SECRET must be whsec_ and what follows it" ;;
  esac
done

case $scheme in
standard)
  id=${3:-} timestamp=${4:-} given=${5:-}
  [ -n "$id" ] && [ -n "$timestamp" ] && [ -n "$given" ] || fail missing_header
  case $timestamp in *[!0-9]* | ?????????????*) fail invalid_timestamp ;; esac
  # A leading zero would make it octal.
  seconds=$(printf %s "$timestamp" | sed 's/^0*\(.\)/\1/')
  age=$((${NOW:-$(date +%s)} - seconds))
  [ "$age" -le "${TOLERANCE_SECONDS:-300}" ] || fail timestamp_too_old
  [ "$age" -ge "-${TOLERANCE_SECONDS:-300}" ] || fail timestamp_too_new
  ;;
body)
  [ -n "${3:-}" ] || fail missing_header
  given=$(printf '%s,%s' "$3" "${4:-}" | tr ',' ' ')
  ;;
*) misuse "the scheme is standard or body" ;;
esac

verdict=no_matching_signature
for secret in $WEBHOOK_SECRET; do
  expected=$(expected_signature "$(key_in_hex "$secret")")
  case $scheme${#expected} in standard47 | body71) ;; *) misuse "openssl cannot compute the signature" ;; esac
  for signature in $given; do
    if is_same "$expected" "$signature"; then verdict=verified; fi
  done
done
[ "$verdict" = verified ] || fail "$verdict"
echo verified
