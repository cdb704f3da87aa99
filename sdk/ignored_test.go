// SPDX-License-Identifier: Apache-2.0

package sdk

import (
	"context"
	"slices"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/encoding/protowire"

	pb "github.com/unwindd/unwindd/sdk/archpb"
)

// newer is a plugin whose description has members that this package does not know.
type newer struct {
	pb.ArchitectureClient
	description *pb.Description
}

func (n newer) Describe(context.Context, *pb.DescribeRequest, ...grpc.CallOption) (*pb.Description, error) {
	return n.description, nil
}

func unknownMember(number protowire.Number) []byte {
	return protowire.AppendVarint(protowire.AppendTag(nil, number, protowire.VarintType), 7)
}

func TestMembersOfANewerPluginAreNamed(t *testing.T) {
	p := encodeDescription(testDescription())
	p.ProtoReflect().SetUnknown(append(unknownMember(1045), unknownMember(1045)...))
	p.Recognises[0].ProtoReflect().SetUnknown(unknownMember(1009))
	c := &Client{link: link{gone: context.Background()}, rpc: newer{description: p}}
	if _, err := c.Describe(context.Background()); err != nil {
		t.Fatal(err)
	}
	if got, want := c.Ignored(), []string{"Description member 1045", "Recogniser member 1009"}; !slices.Equal(got, want) {
		t.Errorf("ignored are %q, want %q", got, want)
	}
}

func TestNoMoreMembersAreNamedThanABound(t *testing.T) {
	p := &pb.Description{}
	var unknown []byte
	for n := range protowire.Number(10 * maxIgnored) {
		unknown = append(unknown, unknownMember(2000+n)...)
	}
	p.ProtoReflect().SetUnknown(unknown)
	var g ignoredMembers
	g.look(p.ProtoReflect())
	if len(g.list) != maxIgnored {
		t.Errorf("%d members are named, want %d", len(g.list), maxIgnored)
	}
	var none ignoredMembers
	if none.look((&pb.Description{}).ProtoReflect()); none.list != nil {
		t.Errorf("nothing is unknown, and %q is named", none.list)
	}
}
