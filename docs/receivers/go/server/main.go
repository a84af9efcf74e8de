// A receiver: go mod init receiver, this file beside go.mod, verify_webhook.go in the folder webhook, then
//
//	WEBHOOK_SECRET=whsec_… go run .
//
// It keeps the ids in memory and may lose work when it ends: otherwise insert a row with the id as its key into your database, and
// process it in a worker.
package main

import (
	"errors"
	"fmt"
	"io"
	"log"
	"net/http"
	"os"
	"strings"
	"sync"
	"time"

	"receiver/webhook"
)

const (
	maxBytes = 1_000_000
	maxIDs   = 10_000
)

// inbox has each delivery once.
type inbox struct {
	mutex sync.Mutex
	known map[string]bool
	ids   []string
	work  chan *webhook.Delivery
}

// accept returns an error if the delivery was not stored.
func (i *inbox) accept(delivery *webhook.Delivery) error {
	if delivery.Payload.IsTest() {
		return nil
	}
	i.mutex.Lock()
	defer i.mutex.Unlock()
	if i.known[delivery.ID] {
		return nil
	}
	select {
	case i.work <- delivery:
	default:
		return errors.New("the queue is full")
	}
	i.known[delivery.ID] = true
	if i.ids = append(i.ids, delivery.ID); len(i.ids) > maxIDs {
		delete(i.known, i.ids[0])
		i.ids = i.ids[1:]
	}
	return nil
}

func main() {
	// Several during a rotation, with spaces between them.
	verifier := webhook.Verifier{Secrets: strings.Fields(os.Getenv("WEBHOOK_SECRET"))}
	box := &inbox{known: map[string]bool{}, work: make(chan *webhook.Delivery, maxIDs)}
	go func() {
		for delivery := range box.work {
			fmt.Println(delivery.Payload.Event, delivery.ID) // your work
		}
	}()
	http.HandleFunc("/", func(response http.ResponseWriter, request *http.Request) {
		if request.Method != http.MethodPost {
			http.Error(response, "", http.StatusMethodNotAllowed)
			return
		}
		body, err := io.ReadAll(http.MaxBytesReader(response, request.Body, maxBytes))
		if err != nil {
			http.Error(response, "", http.StatusRequestEntityTooLarge)
			return
		}
		delivery, err := verifier.Verify(body, request.Header)
		var rejection *webhook.VerificationError
		if errors.As(err, &rejection) {
			http.Error(response, rejection.Code, rejection.Status())
			return
		}
		if err == nil {
			err = box.accept(delivery)
		}
		if err != nil {
			// 5xx: the delivery is retried.
			log.Print(err)
			http.Error(response, "", http.StatusInternalServerError)
			return
		}
		response.WriteHeader(http.StatusNoContent)
	})
	port := os.Getenv("PORT")
	if port == "" {
		port = "4000"
	}
	server := &http.Server{Addr: "127.0.0.1:" + port, ReadTimeout: 15 * time.Second}
	log.Fatal(server.ListenAndServe())
}
