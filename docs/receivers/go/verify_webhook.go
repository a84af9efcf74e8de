// Package webhook verifies that a delivery comes from the platform. Copy this file: it needs Go 1.18 or later, and
// nothing else.
package webhook

import (
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

// Event is the body of a delivery. Deliveries come out of order: see Timestamp.
type Event struct {
	Event        string          `json:"event"`
	ProjectID    string          `json:"project_id"`
	DeploymentID string          `json:"deployment_id"`
	Timestamp    string          `json:"timestamp"`
	Data         json.RawMessage `json:"data"`
}

// Delivery is a verified one. ID is the same however often it comes.
type Delivery struct {
	ID      string
	Payload Event
}

// VerificationError means that a delivery must not be believed: answer 401. Code says which check failed, and is no secret.
type VerificationError struct{ Code string }

func (e *VerificationError) Error() string { return "webhook: " + e.Code }

// Scheme says which of the signatures is looked at.
type Scheme int

const (
	// Standard is webhook-signature, which covers id, time and body.
	Standard Scheme = iota
	// Body is X-Service-Signature, which covers the body alone, so that a copy of a delivery verifies for ever. The ID is
	// the SHA-256 of the body, in hex.
	Body
)

// Verifier knows the webhook's secrets, "whsec_" included. Any of them may have signed.
type Verifier struct {
	Secrets []string
	Scheme  Scheme
	// Tolerance is how far webhook-timestamp may be from now, either way. Zero means five minutes.
	Tolerance time.Duration
	// Now is the clock. Nil means time.Now.
	Now func() time.Time
}

var (
	secretForm    = regexp.MustCompile(`^whsec_[A-Za-z0-9+/]+={0,2}$`)
	timestampForm = regexp.MustCompile(`^[0-9]{1,12}$`)
	betweenV1     = regexp.MustCompile(`,?\s+`)
	betweenSHA256 = regexp.MustCompile(`,\s*`)
)

// Verify takes the body as it came. It returns a *VerificationError, or another error when a secret is none.
func (v Verifier) Verify(body []byte, headers http.Header) (*Delivery, error) {
	if len(v.Secrets) == 0 {
		return nil, errors.New("webhook: there is no secret")
	}
	for _, secret := range v.Secrets {
		if !secretForm.MatchString(secret) {
			return nil, errors.New("webhook: a secret is whsec_ and what follows it, with nothing around it")
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

// Standard Webhooks. The key is what the part of the secret after whsec_ decodes to in base64.
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
	for _, secret := range v.Secrets {
		encoded := strings.TrimRight(strings.TrimPrefix(secret, "whsec_"), "=")
		key, err := base64.RawStdEncoding.DecodeString(encoded)
		if err != nil {
			return "", errors.New("webhook: a secret is not base64 after whsec_")
		}
		digest := sign(key, []byte(id+"."+timestamp+"."), body)
		expected = append(expected, "v1,"+base64.StdEncoding.EncodeToString(digest))
	}
	return id, requireMatch(expected, betweenV1.Split(signature, -1))
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
	// In seconds: a Duration holds no more than 292 years.
	age, most := now().Unix()-seconds, int64(tolerance/time.Second)
	if age > most {
		return &VerificationError{"timestamp_too_old"}
	}
	if age < -most {
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

// Compares all with all, each pair in constant time.
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
