#!/bin/sh
# Verifies webhook deliveries of the platform with openssl. The body is in a file, byte for byte.
#
#   WEBHOOK_SECRET=whsec_… sh verify-webhook.sh standard body.json <webhook-id> <webhook-timestamp> <webhook-signature>
#   WEBHOOK_SECRET=whsec_… sh verify-webhook.sh body body.json <X-Service-Signature> [<X-Service-Signature-Previous>]
#
# Prints "verified" and exits with 0, or prints the failed check and exits with 1. Exits with 2 on a usage error.
# WEBHOOK_SECRET can contain several secrets, separated by spaces. `standard` covers id, time and body; `body` covers only the
# body and cannot detect a replay. Optional variables: NOW (Unix time) and TOLERANCE_SECONDS (300).
#
# For manual checks on your own machine only: openssl receives the key as an argument, which other users of the machine can
# see.
set -eu
set -f # header values are not glob patterns
LC_ALL=C
export LC_ALL

fail() {
  echo "$1"
  exit 1
}

usage_error() {
  echo "$1" >&2
  exit 2
}

bytes_in_hex() { od -An -v -tx1 | tr -d ' \n'; }

# Reads the signed text from stdin. $1: the key, in hex. Prints the HMAC-SHA256 in hex.
hmac() { openssl dgst -sha256 -mac HMAC -macopt "hexkey:$1" | sed 's/^.* //'; }

# The shell does not compare in constant time. HMACs under a random key reveal nothing about the compared texts.
is_same() {
  one=$(printf %s "$1" | hmac "$blind")
  other=$(printf %s "$2" | hmac "$blind")
  # The length check: if openssl fails, both are empty and must not count as equal.
  [ ${#one} -eq 64 ] && [ "$one" = "$other" ]
}

# $1: the key, in hex. Prints the expected signature of the scheme.
expected_signature() {
  if [ "$scheme" = body ]; then
    printf 'sha256=%s' "$(hmac "$1" < "$body")"
  else
    { printf '%s.%s.' "$id" "$timestamp"; cat "$body"; } |
      openssl dgst -sha256 -mac HMAC -macopt "hexkey:$1" -binary | { printf 'v1,'; openssl base64 -A; }
  fi
}

# $1: a secret. The key of `body` is the whole secret, as text. That of `standard` is the part after whsec_, decoded from base64,
# or, of a secret without such a part, also the whole secret.
key_in_hex() {
  encoded='^whsec_([A-Za-z0-9+/]{4})*([A-Za-z0-9+/]{2}(==)?|[A-Za-z0-9+/]{3}=?)?$'
  if [ "$scheme" = standard ] && printf '%s\n' "$1" | grep -Eq "$encoded"; then
    part=${1#whsec_} part=${part%%=*}
    # openssl needs the padding.
    case $((${#part} % 4)) in 2) part=$part== ;; 3) part=$part= ;; esac
    printf %s "$part" | openssl base64 -d -A | bytes_in_hex
  else printf %s "$1" | bytes_in_hex; fi
}

[ $# -ge 2 ] || usage_error "Usage: see the comment at the top of this file."
scheme=$1 body=$2
blind=$(openssl rand -hex 32)
[ -r "$body" ] || usage_error "Cannot read the body file $body."
[ -n "${WEBHOOK_SECRET:-}" ] || usage_error "WEBHOOK_SECRET is not set."
for secret in $WEBHOOK_SECRET; do
  [ ${#secret} -ge 16 ] || usage_error "WEBHOOK_SECRET must be the complete secret (16 bytes or more)."
done

case $scheme in
standard)
  id=${3:-} timestamp=${4:-} given=${5:-}
  [ -n "$id" ] && [ -n "$timestamp" ] && [ -n "$given" ] || fail missing_header
  case $timestamp in *[!0-9]* | ?????????????*) fail invalid_timestamp ;; esac
  # Removes leading zeros: the shell would read the number as octal.
  seconds=$(printf %s "$timestamp" | sed 's/^0*\(.\)/\1/')
  age=$((${NOW:-$(date +%s)} - seconds))
  [ "$age" -le "${TOLERANCE_SECONDS:-300}" ] || fail timestamp_too_old
  [ "$age" -ge "-${TOLERANCE_SECONDS:-300}" ] || fail timestamp_too_new
  ;;
body)
  [ -n "${3:-}" ] || fail missing_header
  given=$(printf '%s,%s' "$3" "${4:-}" | tr ',' ' ')
  ;;
*) usage_error "The scheme must be standard or body." ;;
esac

# $1: the public key of a project, whpk_ and the key in base64. It verifies the signatures v1a. Needs OpenSSL 3.
is_signed_by() {
  folder=$(mktemp -d)
  # What is before the key in its usual form: RFC 8410, section 4.
  { printf '\060\052\060\005\006\003\053\145\160\003\041\000'; printf %s "${1#whpk_}" | openssl base64 -d -A; } > "$folder/key"
  { printf '%s.%s.' "$id" "$timestamp"; cat "$body"; } > "$folder/signed"
  result=1
  for each in $given; do
    case $each in v1a,*) ;; *) continue ;; esac
    printf %s "${each#v1a,}" | openssl base64 -d -A > "$folder/signature"
    openssl pkeyutl -verify -pubin -inkey "$folder/key" -keyform DER -rawin -in "$folder/signed" \
      -sigfile "$folder/signature" > "$folder/output" 2>&1 && result=0
  done
  rm -r "$folder"
  return $result
}

verdict=no_matching_signature
for secret in $WEBHOOK_SECRET; do
  # Rejects a public key as a secret: it is published, so any caller could sign with it.
  case $secret in whpk_*)
    if [ "$scheme" = standard ] && is_signed_by "$secret"; then verdict=verified; fi
    continue
    ;;
  esac
  expected=$(expected_signature "$(key_in_hex "$secret")")
  case $scheme${#expected} in standard47 | body71) ;; *) usage_error "openssl failed to compute the signature." ;; esac
  for signature in $given; do
    if is_same "$expected" "$signature"; then verdict=verified; fi
  done
done
[ "$verdict" = verified ] || fail "$verdict"
echo verified
