/*
 * The server in a process of its own, started by the supervisor.
 */
#ifndef ORBWEAVER_NODEAGENT_PLUGIND_PROCESS_H
#define ORBWEAVER_NODEAGENT_PLUGIND_PROCESS_H

/*
 * Serve until `control` says to end (supervisor.h, `serve`); directories as in server.h. Returns an exit status.
 */
int plugind_run(int control, const char *plugins_dir, const char *devinfo_dir);

#endif
