// Runs verify_webhook.go on the test vectors and prints one line per vector. Argument: the vectors file.
package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"strings"
	"time"

	"vectors/webhook"
)

func main() {
	text, err := os.ReadFile(os.Args[1])
	if err != nil {
		panic(err)
	}
	var file struct {
		Vectors []struct {
			Scheme  string
			Secrets []string
			Body    string
			Headers map[string]string
			Now     int64
		}
	}
	if err := json.Unmarshal(text, &file); err != nil {
		panic(err)
	}
	for _, vector := range file.Vectors {
		headers := http.Header{}
		for name, value := range vector.Headers {
			// A list is the same as a repeated header (RFC 9110, section 5.3).
			for _, each := range strings.Split(value, ", ") {
				headers.Add(name, each)
			}
		}
		verifier := webhook.Verifier{
			Secrets: vector.Secrets,
			Now:     func() time.Time { return time.Unix(vector.Now, 0) },
		}
		if vector.Scheme == "body" {
			verifier.Scheme = webhook.Body
		}
		delivery, err := verifier.Verify([]byte(vector.Body), headers)
		var failure *webhook.VerificationError
		switch {
		case err == nil:
			// null is not an empty id.
			if strings.Contains(vector.Body, `"deployment_id":null`) && delivery.Payload.DeploymentID != nil {
				panic("deployment_id is not nil")
			}
			fmt.Println("verified", delivery.ID, delivery.Payload.Event, delivery.Payload.IsTest())
		case errors.As(err, &failure):
			fmt.Println(failure.Code)
		default:
			panic(err)
		}
	}
}
