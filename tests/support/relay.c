// SPDX-License-Identifier: Apache-2.0
/*
 * relay: a TCP relay that can cut what runs through it.
 *
 *	relay PORT
 *
 * Listens on a free loopback port, prints it, and passes each connection on to 127.0.0.1:PORT.
 * SIGUSR1 resets all connections at once, as a load balancer does that restarts; new ones are taken
 * right away. SIGUSR2 makes the oldest connection that still works hang: it reads on and passes
 * nothing on, as with a dead machine behind a balancer, so that the kernel acknowledges everything.
 * A process per connection: cutting it is killing that process.
 */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/base/own_fd.h"
#include "lib/base/str.h"

enum { CONNECTIONS_MAX = 256 };

static volatile sig_atomic_t cut;
static volatile sig_atomic_t hang; /* in a relay: it hangs; in their parent: one shall */

static struct {
	pid_t pid; /* 0: free */
	unsigned int number;
	bool hangs;
} relays[CONNECTIONS_MAX];

static void on_cut(int signal)
{
	cut = 1;
}

static void on_hang(int signal)
{
	hang = 1;
}

static struct sockaddr_in loopback(uint16_t port)
{
	return (struct sockaddr_in){
		.sin_family = AF_INET,
		.sin_port = htons(port),
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK),
	};
}

/* ---- one connection -------------------------------------------------------------------------- */

/* Closing sends RST: whoever is killed resets. */
static void prepare(int fd)
{
	const struct linger reset = {.l_onoff = 1};
	const int on = 1;

	setsockopt(fd, SOL_SOCKET, SO_LINGER, &reset, sizeof(reset));
	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
}

static bool pass_on(int from, int to)
{
	char bytes[65536];
	ssize_t n = read(from, bytes, sizeof(bytes)), sent = 0;

	if (hang)
		return n > 0;
	for (ssize_t done = 0; n > 0 && done < n; done += sent) {
		sent = write(to, bytes + done, (size_t)(n - done));
		if (sent < 0)
			return false;
	}
	return n > 0;
}

static void relay(int client, uint16_t port)
{
	const struct sockaddr_in server = loopback(port);
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	struct pollfd ends[] = {{.fd = client, .events = POLLIN}, {.fd = fd, .events = POLLIN}};

	if (fd < 0 || connect(fd, (const struct sockaddr *)&server, sizeof(server)) < 0)
		return;
	prepare(client);
	prepare(fd);
	for (;;) {
		if (poll(ends, 2, -1) < 0)
			continue; /* told to hang */
		if (ends[0].revents && !pass_on(client, fd))
			return;
		if (ends[1].revents && !pass_on(fd, client))
			return;
	}
}

/* ---- all of them ----------------------------------------------------------------------------- */

static void reap(void)
{
	pid_t pid = 0;

	while ((pid = waitpid(-1, NULL, WNOHANG)) > 0)
		for (size_t i = 0; i < CONNECTIONS_MAX; i++)
			if (relays[i].pid == pid)
				relays[i].pid = 0;
}

static void take_connection(int listener, uint16_t port)
{
	auto_close int client = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
	static unsigned int taken;
	size_t i = 0;

	while (i < CONNECTIONS_MAX && relays[i].pid)
		i++;
	if (client < 0 || i == CONNECTIONS_MAX)
		return;
	relays[i].number = ++taken;
	relays[i].hangs = false;
	relays[i].pid = fork();
	if (relays[i].pid == 0) {
		signal(SIGUSR1, SIG_IGN);
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		close(listener);
		relay(client, port);
		_exit(0);
	}
	if (relays[i].pid < 0)
		relays[i].pid = 0;
}

static void cut_all(void)
{
	int n = 0;

	for (size_t i = 0; i < CONNECTIONS_MAX; i++)
		if (relays[i].pid) {
			kill(relays[i].pid, SIGKILL);
			n++;
		}
	cut = 0;
	fprintf(stderr, "{\"msg\": \"cut\", \"connections\": %d}\n", n);
}

static void hang_oldest(void)
{
	size_t oldest = CONNECTIONS_MAX;
	int working = 0;

	for (size_t i = 0; i < CONNECTIONS_MAX; i++) {
		if (!relays[i].pid || relays[i].hangs)
			continue;
		working++;
		if (oldest == CONNECTIONS_MAX || relays[i].number < relays[oldest].number)
			oldest = i;
	}
	hang = 0;
	if (oldest < CONNECTIONS_MAX) {
		relays[oldest].hangs = true;
		kill(relays[oldest].pid, SIGUSR2);
	}
	fprintf(stderr, "{\"msg\": \"hanging\", \"number\": %u, \"of\": %d}\n",
		oldest < CONNECTIONS_MAX ? relays[oldest].number : 0, working);
}

/* Fails with -1 and errno. */
static int listen_somewhere(uint16_t *ret_port)
{
	struct sockaddr_in address = loopback(0);
	socklen_t len = sizeof(address);
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	if (fd < 0 || bind(fd, (struct sockaddr *)&address, len) < 0 || listen(fd, 64) < 0 ||
	    getsockname(fd, (struct sockaddr *)&address, &len) < 0)
		return -1;
	*ret_port = ntohs(address.sin_port);
	return fd;
}

int main(int argc, char **argv)
{
	const struct sigaction on_usr1 = {.sa_handler = on_cut};
	const struct sigaction on_usr2 = {.sa_handler = on_hang};
	uint16_t own = 0;
	int64_t port = 0;
	struct pollfd listener = {.events = POLLIN};

	if (argc != 2 || !str_to_int(argv[1], 1, UINT16_MAX, &port)) {
		fprintf(stderr, "usage: relay PORT\n");
		return 2;
	}
	signal(SIGPIPE, SIG_IGN);
	sigaction(SIGUSR1, &on_usr1, NULL);
	sigaction(SIGUSR2, &on_usr2, NULL);
	listener.fd = listen_somewhere(&own);
	if (listener.fd < 0) {
		perror("relay");
		return 1;
	}
	printf("%d\n", own);
	fflush(stdout);
	for (;;) {
		/* Woken by signals; a second at most until a connection that ended makes room. */
		int ready = poll(&listener, 1, 1000);

		if (cut)
			cut_all();
		reap();
		if (hang)
			hang_oldest();
		if (ready > 0)
			take_connection(listener.fd, (uint16_t)port);
	}
}
