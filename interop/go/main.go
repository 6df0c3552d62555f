// The client of the official Go SDK, started as DRIVER TRANSPORT ERA LABEL TARGET...; see ../checks.ts for the checks and
// the lines that it prints.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"reflect"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

var answers = map[string]map[string]any{
	"What is your name?": {"name": "Ada"},
	"Which colour?":      {"choice": "red"},
	"Really red?":        {"confirm": true},
}

const words = "Grüße, 世界 🌍\u2028next\u2029last"

// What the client heard from the server since it was last forgotten.
type heard struct {
	mu        sync.Mutex
	questions []string
	progress  []string
	onHolding func()
}

func (h *heard) forget() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.questions, h.progress = nil, nil
}

func (h *heard) ask(_ context.Context, request *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.questions = append(h.questions, request.Params.Message)
	content := answers[request.Params.Message]
	if content == nil {
		return nil, fmt.Errorf("no answer to %q", request.Params.Message)
	}
	return &mcp.ElicitResult{Action: "accept", Content: content}, nil
}

func (h *heard) hear(_ context.Context, request *mcp.ProgressNotificationClientRequest) {
	params := request.Params
	h.mu.Lock()
	defer h.mu.Unlock()
	h.progress = append(h.progress, fmt.Sprintf("%v %v of %v: %s", params.ProgressToken, params.Progress, params.Total, params.Message))
	if params.Message == "holding" && h.onHolding != nil {
		h.onHolding()
	}
}

func (h *heard) reported() []string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Clone(h.progress)
}

func say(check string, err error) {
	line := map[string]any{"check": check, "ok": err == nil, "detail": ""}
	if err != nil {
		line["detail"] = err.Error()
	}
	text, _ := json.Marshal(line)
	fmt.Println(string(text))
}

func equal(what string, seen, expected any) error {
	if reflect.DeepEqual(seen, expected) {
		return nil
	}
	return fmt.Errorf("%s: %#v instead of %#v", what, seen, expected)
}

type result struct {
	text    string
	isError bool
}

// Calls a tool. The caller sets the progress token: the SDK never does.
func call(ctx context.Context, session *mcp.ClientSession, name string, arguments map[string]any, token string) (result, error) {
	params := &mcp.CallToolParams{Name: name}
	if arguments != nil {
		// A nil map would be sent as null, which is no object: nothing at all becomes {}.
		params.Arguments = arguments
	}
	if token != "" {
		params.SetProgressToken(token)
	}
	called, err := session.CallTool(ctx, params)
	if err != nil {
		return result{}, err
	}
	var text strings.Builder
	for _, block := range called.Content {
		if block, ok := block.(*mcp.TextContent); ok {
			text.WriteString(block.Text)
		} else {
			fmt.Fprintf(&text, "(%T)", block)
		}
	}
	return result{text.String(), called.IsError}, nil
}

func expect(ctx context.Context, session *mcp.ClientSession, name string, arguments map[string]any, token string, expected result) error {
	called, err := call(ctx, session, name, arguments, token)
	if err != nil {
		return err
	}
	return equal("the result", called, expected)
}

func list(ctx context.Context, session *mcp.ClientSession) error {
	var names []string
	for tool, err := range session.Tools(ctx, nil) {
		if err != nil {
			return err
		}
		names = append(names, tool.Name)
	}
	return equal("the tools", names, []string{"echo", "fail", "steps", "slow", "ask", "ask_twice"})
}

func progress(ctx context.Context, session *mcp.ClientSession, client *heard) error {
	client.forget()
	if err := expect(ctx, session, "steps", nil, "steps-token", result{"took 10 steps", false}); err != nil {
		return err
	}
	var expected []string
	for step := 1; step <= 10; step++ {
		expected = append(expected, fmt.Sprintf("steps-token %d of 10: step %d", step, step))
	}
	// The SDK handles notifications beside responses: the last one may still be on its way.
	deadline := time.Now().Add(2 * time.Second)
	for len(client.reported()) < len(expected) && time.Now().Before(deadline) {
		time.Sleep(5 * time.Millisecond)
	}
	return equal("the progress", client.reported(), expected)
}

func cancel(ctx context.Context, session *mcp.ClientSession, client *heard, label string) error {
	cancelling, stop := context.WithCancel(ctx)
	defer stop()
	client.mu.Lock()
	client.onHolding = stop
	client.mu.Unlock()
	called, err := call(cancelling, session, "slow", map[string]any{"label": label}, "slow-token")
	if err == nil {
		return fmt.Errorf("the call ended with %#v", called)
	}
	if !errors.Is(err, context.Canceled) {
		return fmt.Errorf("the call was not cancelled: %w", err)
	}
	return expect(ctx, session, "echo", map[string]any{"text": "on"}, "", result{"on", false})
}

func questions(ctx context.Context, session *mcp.ClientSession, client *heard, tool string, expected []string, text string) error {
	client.forget()
	if err := expect(ctx, session, tool, nil, "", result{text, false}); err != nil {
		return err
	}
	return equal("the questions", client.questions, expected)
}

func run(transport, era, label string, target []string) error {
	ctx, stop := context.WithTimeout(context.Background(), 50*time.Second)
	defer stop()
	client := &heard{}
	// Left to itself, the client asks for the newest.
	offered, expected := era, era
	if era == "auto" {
		offered, expected = "", "2026-07-28"
	}
	var link mcp.Transport
	if transport == "http" {
		link = &mcp.StreamableClientTransport{Endpoint: target[0]}
	} else {
		command := exec.Command(target[0], target[1:]...)
		command.Stderr = os.Stderr
		link = &mcp.CommandTransport{Command: command}
	}
	session, err := mcp.NewClient(&mcp.Implementation{Name: "interop", Version: "0.0.0"}, &mcp.ClientOptions{
		ElicitationHandler:          client.ask,
		ProgressNotificationHandler: client.hear,
	}).Connect(ctx, link, &mcp.ClientSessionOptions{ProtocolVersion: offered})
	if err != nil {
		return err
	}
	say("connect", equal("the version", session.InitializeResult().ProtocolVersion, expected))
	say("list", list(ctx, session))
	say("call", expect(ctx, session, "echo", map[string]any{"text": words}, "", result{words, false}))
	say("error", expect(ctx, session, "fail", nil, "", result{"disk sda is full", true}))
	say("progress", progress(ctx, session, client))
	say("cancel", cancel(ctx, session, client, label))
	say("ask", questions(ctx, session, client, "ask", []string{"What is your name?"}, "Hello, Ada."))
	say("ask_twice", questions(ctx, session, client, "ask_twice", []string{"Which colour?", "Really red?"}, "red: true"))
	return session.Close()
}

func main() {
	if len(os.Args) < 5 {
		fmt.Fprintln(os.Stderr, "usage: DRIVER stdio|http ERA LABEL TARGET...")
		os.Exit(2)
	}
	if err := run(os.Args[1], os.Args[2], os.Args[3], os.Args[4:]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
