package main

import (
	"testing"

	"receiver/webhook"
)

// A refused delivery is retried. If its id were known already, the retry would be accepted, and nobody would process it.
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
