// SPDX-License-Identifier: Apache-2.0

package otlpexport

import (
	"context"
	"crypto/tls"
	"fmt"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/encoding/gzip" // registers itself
	"google.golang.org/grpc/mem"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
)

const (
	userAgent    = "unwindd"
	exportMethod = "/opentelemetry.proto.collector.profiles.v1development.ProfilesService/Export"
)

// dial prepares to send over gRPC.
func (c *Client) dial() error {
	secure := insecure.NewCredentials()
	if c.endpoint.isSecure {
		secure = credentials.NewTLS(&tls.Config{MinVersion: tls.VersionTLS12})
	}
	connection, err := grpc.NewClient("dns:///"+c.endpoint.host,
		grpc.WithTransportCredentials(secure), grpc.WithUserAgent(userAgent), grpc.WithDisableRetry(),
		grpc.WithDefaultCallOptions(
			grpc.ForceCodecV2(encoded{}), grpc.UseCompressor(gzip.Name), grpc.MaxCallRecvMsgSize(maxResponse)))
	if err != nil {
		return fmt.Errorf("collector %s: %w", c.endpoint, err)
	}
	c.close = func() { _ = connection.Close() }
	c.post = func(ctx context.Context, request []byte, headers map[string]string) ([]byte, error) {
		var response []byte
		if err := connection.Invoke(metadata.NewOutgoingContext(ctx, metadata.New(headers)), exportMethod, request, &response); err != nil {
			return nil, grpcFailure(err)
		}
		return response, nil
	}
	return nil
}

// retryable has the codes after which a request is sent again (the specification of OTLP,
// "Failures"). ResourceExhausted is another if the collector sets a pause.
var retryable = map[codes.Code]bool{
	codes.Canceled: true, codes.DeadlineExceeded: true, codes.Aborted: true,
	codes.OutOfRange: true, codes.Unavailable: true, codes.DataLoss: true,
}

func grpcFailure(err error) error {
	s := status.Convert(err)
	failed := &Failure{
		err:         fmt.Errorf("%v: %s", s.Code(), said(s.Message())),
		IsTransient: retryable[s.Code()], IsTooLarge: s.Code() == codes.ResourceExhausted, IsInvalid: s.Code() == codes.InvalidArgument,
	}
	for _, detail := range s.Details() {
		if r, ok := detail.(*errdetails.RetryInfo); ok {
			failed.Wait = max(r.GetRetryDelay().AsDuration(), time.Duration(0))
			failed.IsTransient, failed.IsTooLarge = failed.IsTransient || failed.IsTooLarge, false
		}
	}
	return failed
}

// encoded is the codec of messages that are already encoded: a request is a []byte, and a
// response a *[]byte.
type encoded struct{}

// Name implements encoding.CodecV2: the bytes are protocol buffers.
func (encoded) Name() string { return "proto" }

// Marshal implements encoding.CodecV2.
func (encoded) Marshal(v any) (mem.BufferSlice, error) {
	b, ok := v.([]byte)
	if !ok {
		return nil, fmt.Errorf("%T, expected []byte", v)
	}
	return mem.BufferSlice{mem.SliceBuffer(b)}, nil
}

// Unmarshal implements encoding.CodecV2.
func (encoded) Unmarshal(data mem.BufferSlice, v any) error {
	b, ok := v.(*[]byte)
	if !ok {
		return fmt.Errorf("%T, expected *[]byte", v)
	}
	*b = data.Materialize()
	return nil
}
