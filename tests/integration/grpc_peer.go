// SPDX-License-Identifier: Apache-2.0
// The other end of tests/fakes/grpc_peer.c, with grpc-go as a kubelet uses it.
//
//	grpc-peer-go client SOCKET AUTHORITY CHECK   calls a device plugin; exit status 1 and a reason when it does not behave
//	grpc-peer-go server SOCKET                   a kubelet's server; stops in an orderly way at SIGTERM
//
// AUTHORITY: "path" for what kubelets up to 1.25 send, "localhost" for later ones.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/signal"
	"strings"
	"sync"
	"syscall"
	"time"

	pb "deviceplugin"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/encoding/gzip"
	"google.golang.org/grpc/status"
)

const plugin = "/v1beta1.DevicePlugin/"

func dial(socket, authority string) (*grpc.ClientConn, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	options := []grpc.DialOption{
		grpc.WithInsecure(), grpc.WithBlock(),
		grpc.WithContextDialer(func(ctx context.Context, addr string) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, "unix", socket)
		}),
	}
	if authority != "path" {
		options = append(options, grpc.WithAuthority(authority))
	}
	return grpc.DialContext(ctx, socket, options...)
}

func watch(ctx context.Context, c *grpc.ClientConn) (grpc.ClientStream, error) {
	stream, err := c.NewStream(ctx, &grpc.StreamDesc{ServerStreams: true}, plugin+"ListAndWatch")
	if err != nil {
		return nil, err
	}
	if err := stream.SendMsg(&pb.Empty{}); err != nil {
		return nil, err
	}
	return stream, stream.CloseSend()
}

func wantCode(err error, want codes.Code, text string) error {
	if status.Code(err) != want || !strings.Contains(status.Convert(err).Message(), text) {
		return fmt.Errorf("want %v with %q, got: %v", want, text, err)
	}
	return nil
}

func checkOptions(ctx context.Context, c *grpc.ClientConn) error {
	got := &pb.DevicePluginOptions{}
	if err := c.Invoke(ctx, plugin+"GetDevicePluginOptions", &pb.Empty{}, got); err != nil {
		return err
	}
	if got.PreStartRequired || !got.GetPreferredAllocationAvailable {
		return fmt.Errorf("got %v", got)
	}
	return nil
}

func allocate(ctx context.Context, c *grpc.ClientConn, id string, options ...grpc.CallOption) error {
	got := &pb.AllocateResponse{}
	request := &pb.AllocateRequest{ContainerRequests: []*pb.ContainerAllocateRequest{{DeviceIds: []string{id, "b"}}}}
	if err := c.Invoke(ctx, plugin+"Allocate", request, got, options...); err != nil {
		return err
	}
	r := got.ContainerResponses
	if len(r) != 1 || r[0].Envs["DEVICES"] != id+",b" || len(r[0].Devices) != 1 || r[0].Devices[0].Permissions != "rw" {
		return fmt.Errorf("got %v", got)
	}
	return nil
}

func checkAllocate(ctx context.Context, c *grpc.ClientConn) error { return allocate(ctx, c, "0000:3b:02.1") }

// Lists that grow by one, each beyond the windows, and other calls on the same connection meanwhile.
func checkWatch(ctx context.Context, c *grpc.ClientConn) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	stream, err := watch(ctx, c)
	if err != nil {
		return err
	}
	for last, i := 0, 0; i < 10; i++ {
		got := &pb.ListAndWatchResponse{}
		if err := stream.RecvMsg(got); err != nil {
			return err
		}
		n := len(got.Devices)
		if n < 5000 || n <= last || got.Devices[n-1].Id != fmt.Sprintf("device-%d", n-1) {
			return fmt.Errorf("%d devices after %d", n, last)
		}
		last = n
		if err := checkAllocate(ctx, c); err != nil {
			return err
		}
	}
	cancel()
	// A list that had arrived before comes first.
	for n := 0; err == nil && n < 10; n++ {
		err = stream.RecvMsg(&pb.ListAndWatchResponse{})
	}
	if status.Code(err) != codes.Canceled {
		return fmt.Errorf("after cancelling: %v", err)
	}
	return checkAllocate(context.Background(), c)
}

// A reader that sleeps gets the newest list then, not all that were made meanwhile.
func checkSlow(ctx context.Context, c *grpc.ClientConn) error {
	stream, err := watch(ctx, c)
	if err != nil {
		return err
	}
	time.Sleep(2 * time.Second)
	last := 0
	for i := 0; i < 20; i++ {
		got := &pb.ListAndWatchResponse{}
		if err := stream.RecvMsg(got); err != nil {
			return err
		}
		if n := len(got.Devices); n > last+20 {
			return nil
		} else {
			last = n
		}
	}
	return fmt.Errorf("20 messages and still every list, the last has %d", last)
}

func checkDeadline(ctx context.Context, c *grpc.ClientConn) error {
	ctx, cancel := context.WithTimeout(ctx, 100*time.Millisecond)
	defer cancel()
	err := c.Invoke(ctx, plugin+"PreStartContainer", &pb.PreStartContainerRequest{}, &pb.PreStartContainerResponse{})
	return wantCode(err, codes.DeadlineExceeded, "")
}

func checkCancel(ctx context.Context, c *grpc.ClientConn) error {
	ctx, cancel := context.WithCancel(ctx)
	time.AfterFunc(100*time.Millisecond, cancel)
	err := c.Invoke(ctx, plugin+"PreStartContainer", &pb.PreStartContainerRequest{}, &pb.PreStartContainerResponse{})
	return wantCode(err, codes.Canceled, "")
}

func checkStatus(ctx context.Context, c *grpc.ClientConn) error {
	err := c.Invoke(ctx, plugin+"GetPreferredAllocation", &pb.PreferredAllocationRequest{}, &pb.Empty{})
	return wantCode(err, codes.FailedPrecondition, "100% belegt:\nGerät fehlt")
}

func checkUnknown(ctx context.Context, c *grpc.ClientConn) error {
	err := c.Invoke(ctx, plugin+"Fly", &pb.Empty{}, &pb.Empty{})
	return wantCode(err, codes.Unimplemented, `unknown method "/v1beta1.DevicePlugin/Fly"`)
}

func checkCompressed(ctx context.Context, c *grpc.ClientConn) error {
	return wantCode(allocate(ctx, c, "a", grpc.UseCompressor(gzip.Name)), codes.Unimplemented, "gzip")
}

func checkTooLarge(ctx context.Context, c *grpc.ClientConn) error {
	err := allocate(ctx, c, strings.Repeat("x", 5<<20))
	if err := wantCode(err, codes.ResourceExhausted, "at most 4194304"); err != nil {
		return err
	}
	return checkAllocate(ctx, c)
}

func checkLarge(ctx context.Context, c *grpc.ClientConn) error {
	return allocate(ctx, c, strings.Repeat("x", 3<<20))
}

func checkMany(ctx context.Context, c *grpc.ClientConn) error {
	var group sync.WaitGroup
	results := make(chan error, 1000)
	for i := 0; i < 1000; i++ {
		group.Add(1)
		go func(i int) {
			defer group.Done()
			results <- allocate(ctx, c, fmt.Sprintf("device-%d", i))
		}(i)
	}
	group.Wait()
	close(results)
	for err := range results {
		if err != nil {
			return err
		}
	}
	return nil
}

// The server is told to end while a stream is open.
func checkEnd(ctx context.Context, c *grpc.ClientConn) error {
	stream, err := watch(ctx, c)
	for i := 0; err == nil; i++ {
		if i == 1 {
			fmt.Println("watching")
		}
		err = stream.RecvMsg(&pb.ListAndWatchResponse{})
	}
	return wantCode(err, codes.Unavailable, "the server is closing")
}

// Every RPC of our device plugin (kubelet-tool with the resource spidernet.io/x: 0000:3b:00.0 to .3, the last one unhealthy), with
// deadlines as kubelets set them, with ones that have passed, and cancelled.
func checkPlugin(ctx context.Context, c *grpc.ClientConn) error {
	for _, check := range []func(context.Context, *grpc.ClientConn) error{
		checkOptions, pluginWatch, pluginAllocate, pluginRefuses, pluginPrefers, pluginPreStart, pluginMany,
	} {
		if err := check(ctx, c); err != nil {
			return err
		}
	}
	return nil
}

func pluginWatch(ctx context.Context, c *grpc.ClientConn) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	stream, err := watch(ctx, c)
	if err != nil {
		return err
	}
	got := &pb.ListAndWatchResponse{}
	if err := stream.RecvMsg(got); err != nil {
		return err
	}
	if len(got.Devices) != 4 || got.Devices[0].Id != "0000:3b:00.0" || got.Devices[0].Health != "Healthy" ||
		got.Devices[3].Health != "Unhealthy" || len(got.Devices[0].GetTopology().GetNodes()) != 1 {
		return fmt.Errorf("got %v", got)
	}
	cancel()
	return wantCode(stream.RecvMsg(got), codes.Canceled, "")
}

func pluginCall(ctx context.Context, c *grpc.ClientConn, ids ...string) (*pb.AllocateResponse, error) {
	got := &pb.AllocateResponse{}
	request := &pb.AllocateRequest{ContainerRequests: []*pb.ContainerAllocateRequest{{DeviceIds: ids}}}
	return got, c.Invoke(ctx, plugin+"Allocate", request, got)
}

func pluginAllocate(ctx context.Context, c *grpc.ClientConn) error {
	ctx, cancel := context.WithTimeout(ctx, 20*time.Second)
	defer cancel()
	got, err := pluginCall(ctx, c, "0000:3b:00.2", "0000:3b:00.0")
	if err != nil {
		return err
	}
	r := got.ContainerResponses
	if len(r) != 1 || r[0].Envs["PCIDEVICE_SPIDERNET_IO_X"] != "0000:3b:00.2,0000:3b:00.0" || len(r[0].Devices) != 2 ||
		r[0].Devices[0].HostPath != "/dev/infiniband/uverbs0" || r[0].Devices[0].Permissions != "rw" {
		return fmt.Errorf("got %v", got)
	}
	return nil
}

func pluginRefuses(ctx context.Context, c *grpc.ClientConn) error {
	if _, err := pluginCall(ctx, c, "0000:3b:00.7"); wantCode(err, codes.NotFound, "0000:3b:00.7") != nil {
		return fmt.Errorf("an unknown device: %v", err)
	}
	if _, err := pluginCall(ctx, c, "0000:3b:00.3"); wantCode(err, codes.FailedPrecondition, "0000:3b:00.3") != nil {
		return fmt.Errorf("an unhealthy device: %v", err)
	}
	late, cancel := context.WithDeadline(ctx, time.Now().Add(-time.Second))
	defer cancel()
	if _, err := pluginCall(late, c, "0000:3b:00.1"); wantCode(err, codes.DeadlineExceeded, "") != nil {
		return fmt.Errorf("a deadline that has passed: %v", err)
	}
	return pluginAllocate(ctx, c)
}

func pluginPrefers(ctx context.Context, c *grpc.ClientConn) error {
	got := &pb.PreferredAllocationResponse{}
	request := &pb.PreferredAllocationRequest{ContainerRequests: []*pb.ContainerPreferredAllocationRequest{{
		AvailableDeviceIds: []string{"0000:3b:00.2", "0000:3b:00.1", "0000:3b:00.0"}, MustIncludeDeviceIds: []string{"0000:3b:00.2"},
		AllocationSize: 2}}}
	if err := c.Invoke(ctx, plugin+"GetPreferredAllocation", request, got); err != nil {
		return err
	}
	ids := strings.Join(got.ContainerResponses[0].DeviceIds, " ")
	if len(got.ContainerResponses) != 1 || (ids != "0000:3b:00.2 0000:3b:00.0" && ids != "0000:3b:00.0 0000:3b:00.2") {
		return fmt.Errorf("got %v", got)
	}
	request.ContainerRequests[0].AllocationSize = 4
	return wantCode(c.Invoke(ctx, plugin+"GetPreferredAllocation", request, got), codes.InvalidArgument, "4")
}

func pluginPreStart(ctx context.Context, c *grpc.ClientConn) error {
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	return c.Invoke(ctx, plugin+"PreStartContainer", &pb.PreStartContainerRequest{DeviceIds: []string{"0000:3b:00.0"}},
		&pb.PreStartContainerResponse{})
}

// Half of the callers change their mind.
func pluginMany(ctx context.Context, c *grpc.ClientConn) error {
	var group sync.WaitGroup
	results := make(chan error, 1000)
	for i := 0; i < 1000; i++ {
		group.Add(1)
		go func(i int) {
			defer group.Done()
			own, cancel := context.WithCancel(ctx)
			defer cancel()
			if i%2 == 1 {
				time.AfterFunc(time.Duration(i)*10*time.Microsecond, cancel)
			}
			_, err := pluginCall(own, c, fmt.Sprintf("0000:3b:00.%d", i%3))
			if i%2 == 1 && status.Code(err) == codes.Canceled {
				err = nil
			}
			results <- err
		}(i)
	}
	group.Wait()
	close(results)
	for err := range results {
		if err != nil {
			return err
		}
	}
	return pluginAllocate(ctx, c)
}

var checks = map[string]func(context.Context, *grpc.ClientConn) error{
	"options": checkOptions, "allocate": checkAllocate, "watch": checkWatch, "slow": checkSlow, "deadline": checkDeadline,
	"cancel": checkCancel, "status": checkStatus, "unknown": checkUnknown, "compressed": checkCompressed,
	"too-large": checkTooLarge, "large": checkLarge, "many": checkMany, "end": checkEnd,
	"plugin": checkPlugin,
}

func client(socket, authority, name string) error {
	check, ok := checks[name]
	if !ok {
		return fmt.Errorf("no check %q", name)
	}
	c, err := dial(socket, authority)
	if err != nil {
		return err
	}
	defer c.Close()
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	return check(ctx, c)
}

func register(_ interface{}, ctx context.Context, decode func(interface{}) error, _ grpc.UnaryServerInterceptor) (interface{}, error) {
	request := &pb.RegisterRequest{}
	if err := decode(request); err != nil {
		return nil, err
	}
	fmt.Println("register", request.Version, request.Endpoint, request.ResourceName)
	switch request.ResourceName {
	case "slow/slow":
		_, has := ctx.Deadline()
		<-ctx.Done()
		fmt.Println("slow ended:", ctx.Err(), has)
		// Both ends know of the deadline; what the client makes of its own is what is tested.
		time.Sleep(time.Second)
		return nil, ctx.Err()
	case "no-name":
		return nil, errors.New("invalid name \"no-name\": 100% würong")
	}
	return &pb.Empty{}, nil
}

func list(n int) *pb.ListAndWatchResponse {
	response := &pb.ListAndWatchResponse{}
	for i := 0; i < n; i++ {
		response.Devices = append(response.Devices, &pb.Device{Id: fmt.Sprintf("device-%d", i), Health: "Healthy"})
	}
	return response
}

func stream(send func(grpc.ServerStream) error) grpc.StreamHandler {
	return func(_ interface{}, s grpc.ServerStream) error {
		if err := s.RecvMsg(&pb.Empty{}); err != nil {
			return err
		}
		if err := s.RecvMsg(&pb.Empty{}); err != io.EOF {
			return fmt.Errorf("after the message: %v", err)
		}
		return send(s)
	}
}

func five(s grpc.ServerStream) error {
	for i := 0; i < 5; i++ {
		if err := s.SendMsg(list(5000 + i)); err != nil {
			return err
		}
	}
	return nil
}

func forever(s grpc.ServerStream) error {
	for {
		if err := s.SendMsg(list(1)); err != nil {
			fmt.Println("forever ended:", status.Code(err))
			return err
		}
		time.Sleep(5 * time.Millisecond)
	}
}

func huge(s grpc.ServerStream) error { return s.SendMsg(list(300000)) }

func server(socket string) error {
	listener, err := net.Listen("unix", socket)
	if err != nil {
		return err
	}
	s := grpc.NewServer()
	s.RegisterService(&grpc.ServiceDesc{
		ServiceName: "v1beta1.Registration",
		HandlerType: (*interface{})(nil),
		Methods:     []grpc.MethodDesc{{MethodName: "Register", Handler: register}},
	}, nil)
	s.RegisterService(&grpc.ServiceDesc{
		ServiceName: "v1beta1.DevicePlugin",
		HandlerType: (*interface{})(nil),
		Streams: []grpc.StreamDesc{
			{StreamName: "ListAndWatch", Handler: stream(five), ServerStreams: true},
			{StreamName: "Forever", Handler: stream(forever), ServerStreams: true},
			{StreamName: "Huge", Handler: stream(huge), ServerStreams: true},
		},
	}, nil)
	stop := make(chan os.Signal, 1)
	signal.Notify(stop, syscall.SIGTERM)
	go func() {
		<-stop
		time.AfterFunc(200*time.Millisecond, s.Stop)
		s.GracefulStop()
	}()
	fmt.Println("serving")
	return s.Serve(listener)
}

func main() {
	err := errors.New("usage: client SOCKET AUTHORITY CHECK | server SOCKET")
	if len(os.Args) == 5 && os.Args[1] == "client" {
		err = client(os.Args[2], os.Args[3], os.Args[4])
	} else if len(os.Args) == 3 && os.Args[1] == "server" {
		err = server(os.Args[2])
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
