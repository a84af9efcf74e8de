// Package webhook verifies webhook deliveries of the platform. Copy this file; it needs only Go 1.18 or later.
package webhook

import (
	"crypto/ed25519"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// Event is the body of a delivery. Deliveries can arrive out of order: compare Timestamp. DeploymentID is nil for the events
// webhook.failing and webhook.disabled, which are not about a deployment.
type Event struct {
	Event        string          `json:"event"`
	ProjectID    string          `json:"project_id"`
	DeploymentID *string         `json:"deployment_id"`
	Timestamp    string          `json:"timestamp"`
	Data         json.RawMessage `json:"data"`
}

// IsTest reports whether the event is that of a test delivery, and nothing happened: respond with 2xx, and otherwise ignore it.
func (e Event) IsTest() bool {
	// Raw, so that no other field can fail.
	var data map[string]json.RawMessage
	return json.Unmarshal(e.Data, &data) == nil && string(data["test"]) == "true"
}

// Delivery is a verified delivery. ID identifies a repeated delivery: it is the same for every attempt.
type Delivery struct {
	ID      string
	Payload Event
}

// VerificationError means that a delivery is not accepted: respond with Status. Code is the failed check; it is not secret.
type VerificationError struct{ Code string }

func (e *VerificationError) Error() string { return "webhook: " + e.Code }

// Status is 401 if the delivery is not authentic, and 400 for invalid_payload, whose signature is valid.
func (e *VerificationError) Status() int {
	if e.Code == "invalid_payload" {
		return http.StatusBadRequest
	}
	return http.StatusUnauthorized
}

// Scheme selects the signature to verify.
type Scheme int

const (
	// Standard is webhook-signature, which covers id, time and body.
	Standard Scheme = iota
	// Body is X-Service-Signature, which covers only the body, so that a replayed delivery always verifies. The ID is the
	// SHA-256 of the body, in hex.
	Body
)

// Verifier verifies deliveries. Secrets are the webhook's whole secrets, usually with "whsec_", or the project's public key, "whpk_…";
// one of them must match.
type Verifier struct {
	Secrets []string
	Scheme  Scheme
	// Tolerance is the max difference between webhook-timestamp and now, in both directions. Zero means five minutes.
	Tolerance time.Duration
	// Now is the clock. Nil means time.Now.
	Now func() time.Time
}

var (
	encodedSecret = regexp.MustCompile(`^whsec_((?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}(?:==)?|[A-Za-z0-9+/]{3}=?)?)$`)
	timestampForm = regexp.MustCompile(`^[0-9]{1,12}$`)
	betweenV1     = regexp.MustCompile(`,?\s+`)
	betweenSHA256 = regexp.MustCompile(`,\s*`)
)

// Verify verifies the raw body. It returns a *VerificationError, or another error when a secret is not valid.
func (v Verifier) Verify(body []byte, headers http.Header) (*Delivery, error) {
	if len(v.Secrets) == 0 {
		return nil, errors.New("webhook: no secret is set")
	}
	for _, secret := range v.Secrets {
		if len(secret) < 16 || strings.TrimSpace(secret) != secret {
			return nil, errors.New("webhook: a secret must be complete (16 bytes or more), without surrounding whitespace")
		}
	}
	verify := v.verifyStandard
	if v.Scheme == Body {
		verify = v.verifyBody
	}
	id, err := verify(body, headers)
	if err != nil {
		return nil, err
	}
	delivery := &Delivery{ID: id}
	if json.Unmarshal(body, &delivery.Payload) != nil {
		return nil, &VerificationError{"invalid_payload"}
	}
	return delivery, nil
}

// Standard Webhooks.
func (v Verifier) verifyStandard(body []byte, headers http.Header) (string, error) {
	id, timestamp, signature := header(headers, "webhook-id"), header(headers, "webhook-timestamp"), header(headers, "webhook-signature")
	if id == "" || timestamp == "" || signature == "" {
		return "", &VerificationError{"missing_header"}
	}
	if !timestampForm.MatchString(timestamp) {
		return "", &VerificationError{"invalid_timestamp"}
	}
	if err := v.checkAge(timestamp); err != nil {
		return "", err
	}
	var expected []string
	given, signed := betweenV1.Split(signature, -1), append([]byte(id+"."+timestamp+"."), body...)
	for _, secret := range v.Secrets {
		if isPublicKey(secret) {
			if isSignedBy(secret, signed, given) {
				return id, nil
			}
			continue
		}
		expected = append(expected, "v1,"+base64.StdEncoding.EncodeToString(sign(standardKey(secret), signed)))
	}
	return id, requireMatch(expected, given)
}

// Rejects a public key as a secret: it is published, so any caller could sign with it.
func isPublicKey(text string) bool { return strings.HasPrefix(text, "whpk_") }

// The public key of a project, whpk_ and the key in base64, verifies the signatures v1a.
func isSignedBy(key string, signed []byte, given []string) bool {
	publicKey, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(key, "whpk_"))
	if err != nil || len(publicKey) != ed25519.PublicKeySize {
		return false
	}
	for index, each := range given {
		if index == 10 {
			break
		}
		signature, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(each, "v1a,"))
		if strings.HasPrefix(each, "v1a,") && err == nil && ed25519.Verify(publicKey, signed, signature) {
			return true
		}
	}
	return false
}

// The key is the part of the secret after whsec_, decoded from base64. Any other secret is the key itself, as text.
func standardKey(secret string) []byte {
	if encoded := encodedSecret.FindStringSubmatch(secret); encoded != nil {
		if key, err := base64.RawStdEncoding.DecodeString(strings.TrimRight(encoded[1], "=")); err == nil {
			return key
		}
	}
	return []byte(secret)
}

func (v Verifier) checkAge(timestamp string) error {
	tolerance, now := v.Tolerance, v.Now
	if tolerance == 0 {
		tolerance = 5 * time.Minute
	}
	if now == nil {
		now = time.Now
	}
	seconds, err := strconv.ParseInt(timestamp, 10, 64)
	if err != nil {
		return &VerificationError{"invalid_timestamp"}
	}
	// In seconds: a Duration overflows after 292 years.
	age, maxAge := now().Unix()-seconds, int64(tolerance/time.Second)
	if age > maxAge {
		return &VerificationError{"timestamp_too_old"}
	}
	if age < -maxAge {
		return &VerificationError{"timestamp_too_new"}
	}
	return nil
}

// The key is the whole secret as text.
func (v Verifier) verifyBody(body []byte, headers http.Header) (string, error) {
	signature := header(headers, "X-Service-Signature")
	if signature == "" {
		return "", &VerificationError{"missing_header"}
	}
	var expected []string
	for _, secret := range v.Secrets {
		if isPublicKey(secret) {
			continue
		}
		expected = append(expected, "sha256="+hex.EncodeToString(sign([]byte(secret), body)))
	}
	given := signature + "," + header(headers, "X-Service-Signature-Previous")
	digest := sha256.Sum256(body)
	return hex.EncodeToString(digest[:]), requireMatch(expected, betweenSHA256.Split(given, -1))
}

func sign(key []byte, parts ...[]byte) []byte {
	mac := hmac.New(sha256.New, key)
	for _, part := range parts {
		mac.Write(part)
	}
	return mac.Sum(nil)
}

func header(headers http.Header, name string) string {
	return strings.Join(headers.Values(name), ", ")
}

// Compares each expected with each given signature, in constant time per pair.
func requireMatch(expected, given []string) error {
	isMatch := false
	for _, one := range expected {
		for _, other := range given {
			isMatch = hmac.Equal([]byte(one), []byte(other)) || isMatch
		}
	}
	if !isMatch {
		return &VerificationError{"no_matching_signature"}
	}
	return nil
}
