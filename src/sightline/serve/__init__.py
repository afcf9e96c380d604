"""The HTTP service: an API for programs and a page for people.

app      the routes                       models   the served models, behind one interface
guard    ids, logs, headers, keys         batching one model call for many waiting requests
intake   bodies, within limits            server   uvicorn, and a graceful shutdown
"""
