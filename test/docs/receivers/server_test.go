package main

import (
	"strconv"
	"testing"

	"receiver/webhook"
)

// A refused delivery is retried. If its id were known already, the retry would be accepted, and the delivery would not be processed.
func TestRefusedDeliveryIsAcceptedLater(t *testing.T) {
	box := &inbox{known: map[string]bool{}, work: make(chan *webhook.Delivery, 1)}
	first, second := &webhook.Delivery{ID: "1"}, &webhook.Delivery{ID: "2"}
	if err := box.accept(first); err != nil {
		t.Fatal(err)
	}
	if box.accept(second) == nil {
		t.Fatal("a full queue accepted a delivery")
	}
	<-box.work
	if err := box.accept(second); err != nil {
		t.Fatal(err)
	}
	if len(box.work) != 1 || <-box.work != second {
		t.Fatal("the delivery was accepted, and not queued")
	}
}

func TestOldestIDIsForgotten(t *testing.T) {
	box := &inbox{known: map[string]bool{}, work: make(chan *webhook.Delivery, 1)}
	accepted := func(id int) bool {
		if err := box.accept(&webhook.Delivery{ID: strconv.Itoa(id)}); err != nil {
			t.Fatal(err)
		}
		isNew := len(box.work) == 1
		if isNew {
			<-box.work
		}
		return isNew
	}
	for id := 0; id <= maxIDs; id++ {
		if !accepted(id) {
			t.Fatal("a new delivery was not accepted")
		}
	}
	if accepted(maxIDs) || !accepted(0) || len(box.known) != maxIDs {
		t.Fatal("not the newest ids are known")
	}
}
